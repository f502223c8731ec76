//! Items of `input` as messages.

use std::borrow::Cow;

use protocol::json::BadRequest;
use serde_json::{Value, json};

use super::super::{input::messages, tools::Tools};
use crate::chat_request::PICTURES_FOLLOW;

fn read(instructions: Option<&str>, input: &Value) -> Result<Value, BadRequest> {
    let raw = serde_json::value::to_raw_value(input).unwrap();
    let instructions = instructions.map(|text| Cow::Owned(text.to_owned()));
    messages(instructions, Some(&raw), &mut Tools::default())
        .map(|messages| serde_json::to_value(messages).unwrap())
}

#[test]
fn a_string_is_the_users() {
    assert_eq!(read(None, &json!("hi")).unwrap(), json!([{"role": "user", "content": "hi"}]));
    assert_eq!(
        read(Some("Be short."), &json!("hi")).unwrap(),
        json!([{"role": "system", "content": "Be short."}, {"role": "user", "content": "hi"}])
    );
}

#[test]
fn leading_developer_messages_join_the_instructions() {
    let input = json!([
        {"role": "developer", "content": [{"type": "input_text", "text": "b"}]},
        {"type": "message", "role": "system", "content": "c"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "d"}, {"type": "input_text", "text": "e"}]},
        {"type": "message", "role": "developer", "content": "f"},
    ]);
    assert_eq!(
        read(Some("a"), &input).unwrap(),
        json!([
            {"role": "system", "content": "a\n\nb\n\nc"},
            {"role": "user", "content": "d\ne\n\n<system-reminder>\nf\n</system-reminder>"},
        ])
    );
}

#[test]
fn a_turn_with_parallel_calls_is_one_message_and_its_results() {
    let input = json!([
        {"type": "message", "role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "Looking.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "ls", "arguments": "{\"p\":\".\"}"},
        {"type": "function_call", "call_id": "c2", "name": "read", "namespace": "mcp__fs", "arguments": ""},
        {"type": "custom_tool_call", "call_id": "c3", "name": "apply_patch", "input": "*** \"a\"\n"},
        {"type": "function_call_output", "call_id": "c1", "output": "x"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "y"}, {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "original"}]},
        {"type": "custom_tool_call_output", "call_id": "c3", "output": "z"},
        {"type": "reasoning", "summary": [], "encrypted_content": "…"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
        {"type": "message", "role": "assistant", "content": "Really."},
    ]);
    let calls = json!([
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{\"p\":\".\"}"}},
        {"id": "c2", "type": "function", "function": {"name": "mcp__fs__read", "arguments": "{}"}},
        {"id": "c3", "type": "function", "function": {"name": "apply_patch", "arguments": "{\"input\":\"*** \\\"a\\\"\\n\"}"}},
    ]);
    assert_eq!(
        read(None, &input).unwrap(),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "Looking.", "reasoning_content": "hm", "tool_calls": calls},
            {"role": "tool", "content": "x", "tool_call_id": "c1"},
            {"role": "tool", "content": "y", "tool_call_id": "c2"},
            {"role": "tool", "content": "z", "tool_call_id": "c3"},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA", "detail": "high"}}]},
            {"role": "assistant", "content": "Done."},
            {"role": "assistant", "content": "Really."},
        ])
    );
}

#[test]
fn words_after_a_call_do_not_part_it_from_its_result() {
    let input = json!([
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"role": "assistant", "content": "Wait."},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image", "image_url": "https://x/y.png"}]},
    ]);
    let messages = read(None, &input).unwrap();
    assert_eq!(messages[0]["content"], "Wait.");
    assert_eq!(messages[0]["tool_calls"][0]["id"], "c");
    assert_eq!(messages[1]["content"], PICTURES_FOLLOW);
    assert_eq!(messages[2]["role"], "user");
}

#[test]
fn traces_and_thoughts_alone_are_no_messages() {
    let input = json!([
        {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "s"}]},
        {"type": "tool_search_call", "arguments": {"q": 1}, "execution": "client", "call_id": null},
    ]);
    assert_eq!(read(None, &input).unwrap_err().param.as_deref(), Some("input"));
    assert_eq!(read(Some("a"), &input).unwrap().as_array().unwrap().len(), 1);
}

#[test]
fn results_follow_their_calls_whatever_stands_between() {
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let output = |id: Value, output: Value| json!({"type": "function_call_output", "call_id": id, "name": "g", "output": output});
    let picture = json!([{"type": "input_image", "image_url": "https://x/y.png"}]);
    let input = json!([
        {"role": "user", "content": "u"}, call("a"), call("b"),
        {"role": "developer", "content": "note"}, output(json!("a"), picture),
        {"role": "user", "content": "see"}, output(json!("b"), json!({"stdout": "x"})),
        output(Value::Null, json!("It is nine.")), output(json!("gone"), json!("late")),
    ]);
    let read = read(None, &input).unwrap();
    let roles: Vec<&str> =
        read.as_array().unwrap().iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(
        roles,
        ["user", "assistant", "tool", "tool", "user", "user", "user", "user", "user"]
    );
    assert_eq!(read[3]["content"], "{\"stdout\":\"x\"}");
    assert_eq!(read[7]["content"], "g: It is nine.");
    assert_eq!(read[8]["content"], "late");
}

#[test]
fn tools_that_the_client_ran_are_calls_of_their_names() {
    let input = json!([
        {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
        {"type": "local_shell_call_output", "id": "c", "output": "x"},
        {"type": "shell_call", "call_id": "s", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "s", "output": [{"stdout": "y"}]},
        {"type": "computer_call", "call_id": "k", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "k", "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"}},
        {"type": "mcp_approval_request", "id": "m"},
        {"type": "mcp_approval_response", "approval_request_id": "m"},
        {"role": "assistant", "content": "Done."},
    ]);
    let read = read(None, &input).unwrap();
    let function = &read[0]["tool_calls"][0]["function"];
    assert_eq!(function["name"], "local_shell");
    assert_eq!(function["arguments"], r#"{"command":["ls"],"type":"exec"}"#);
    let contents: Vec<&Value> = [1, 3, 5].iter().map(|at| &read[*at]["content"]).collect();
    assert_eq!(contents, ["x", "[{\"stdout\":\"y\"}]", PICTURES_FOLLOW]);
    assert_eq!((&read[6]["role"], &read[7]["content"]), (&json!("user"), &json!("Done.")));
}

#[test]
fn unsupported_input_is_named() {
    let cases = [
        (json!([]), "input"),
        (json!(5), "input"),
        (json!([{"role": "robot", "content": "x"}]), "input[0].role"),
        (json!([{"role": "user"}]), "input[0].content"),
        (json!([{"role": "user", "content": 5}]), "input[0].content"),
        (json!([{"type": "item_reference", "id": "msg_1"}]), "input[0]"),
        (json!([{"type": "compaction", "encrypted_content": "x"}]), "input[0]"),
        (json!(["x", {"role": "user", "content": []}]), "input[0]"),
        (
            json!([{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_file", "file_id": "f"}]}]),
            "input[0].content[1]",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]),
            "input[0].content[0]",
        ),
        (json!([{"type": "function_call", "name": "f", "arguments": "{}"}]), "input[0].call_id"),
        (
            json!([{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}]),
            "input[0].arguments",
        ),
        (json!([{"type": "function_call_output", "call_id": "c"}]), "input[0].output"),
    ];
    for (input, param) in cases {
        let refused = read(None, &input).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some(param), "{input}");
        assert!(refused.message.contains(param), "{refused}");
    }
}
