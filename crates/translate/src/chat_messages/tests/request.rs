//! Requests in the provider's shape.

use protocol::json::BadRequest;
use serde_json::{Value, json};

use super::context;
use crate::kit::with_fields;

fn request(given: &Value) -> Result<Value, BadRequest> {
    let body = super::super::request(given.to_string().as_bytes(), &context(false))?;
    Ok(serde_json::from_slice(&body).unwrap())
}

/// A request with these fields beside a model and a message.
fn with(fields: &Value) -> Value {
    with_fields(json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}), fields)
}

fn messages(of: &Value) -> Value {
    request(&with(&json!({"messages": of}))).unwrap()["messages"].clone()
}

/// The parameter that is named when these fields are refused.
fn refused(fields: &Value) -> String {
    let error = request(&with(fields)).unwrap_err();
    let param = error.param.unwrap();
    assert!(error.message.contains(&format!("`{param}")), "{}", error.message);
    param
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

#[test]
fn parameters_are_carried() {
    let given = with(
        &json!({"max_completion_tokens": 9, "max_tokens": 5, "temperature": 0.5, "top_p": 0.9,
        "top_k": 40, "stop": ["A", "B"], "user": "u", "stream": true, "stream_options": {"include_usage": true}}),
    );
    let expected = json!({"model": "m", "max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 40,
        "stop_sequences": ["A", "B"], "metadata": {"user_id": "u"}, "stream": true, "messages": [user("Hi")]});
    assert_eq!(request(&given).unwrap(), expected);
}

#[test]
fn absent_fields_have_the_documented_defaults() {
    let expected =
        json!({"model": "m", "max_tokens": 4096, "stream": false, "messages": [user("Hi")]});
    assert_eq!(request(&with(&json!({}))).unwrap(), expected);
    let nulls =
        json!({"max_tokens": null, "temperature": null, "stop": null, "tools": null, "user": null});
    assert_eq!(request(&with(&nulls)).unwrap(), expected);
}

#[test]
fn fields_of_little_effect_are_dropped() {
    let harmless = json!({"seed": 1, "frequency_penalty": 0.5, "presence_penalty": 0.5,
        "reasoning_effort": "low", "n": 1, "logprobs": false, "logit_bias": {}, "modalities": ["text"],
        "response_format": {"type": "text"}, "store": true, "metadata": {"a": "b"}, "tools": [],
        "tool_choice": "auto", "parallel_tool_calls": true, "top_logprobs": 0, "of_tomorrow": 1});
    assert_eq!(request(&with(&harmless)).unwrap(), request(&with(&json!({}))).unwrap());
    assert_eq!(request(&with(&json!({"temperature": 1.7}))).unwrap()["temperature"], 1.0);
    assert_eq!(request(&with(&json!({"stop": "A"}))).unwrap()["stop_sequences"], json!(["A"]));
}

#[test]
fn system_messages_are_one_prompt() {
    let given = with(&json!({"messages": [
        {"role": "system", "content": "One."}, {"role": "user", "content": "Hi"},
        {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
        {"role": "user", "name": "ann", "content": "Go."}]}));
    let written = request(&given).unwrap();
    assert_eq!(written["system"], "One.\n\nTwo.");
    let turn = json!([{"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "Go."}]}]);
    assert_eq!(written["messages"], turn);
}

#[test]
fn a_round_of_tools_keeps_its_order() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let written = messages(&json!([
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [call("a", "{\"b\":1}"), call("b", "")]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": "Go on."}]));
    let used =
        |id: &str, input: Value| json!({"type": "tool_use", "id": id, "name": "f", "input": input});
    let result = |id: &str, text: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]});
    let expected = json!([
        user("Look."),
        {"role": "assistant", "content": [used("a", json!({"b": 1})), used("b", json!({}))]},
        {"role": "user", "content": [result("a", "one"), result("b", "two"), {"type": "text", "text": "Go on."}]}]);
    assert_eq!(written, expected);
}

#[test]
fn arguments_that_a_model_broke_go_on_as_text() {
    for broken in ["{\"a\":", "[1]", "no \"json\""] {
        let call = json!({"id": "a", "function": {"name": "f", "arguments": broken}});
        let written = messages(&json!([{"role": "assistant", "tool_calls": [call]}]));
        assert_eq!(written[0], user("Begin."));
        assert_eq!(written[1]["content"][0]["input"], json!({"arguments": broken}));
    }
}

#[test]
fn the_rules_of_messages_are_kept() {
    let call = |id: &str| json!({"id": id, "function": {"name": "f", "arguments": {"a": 1}}});
    let given = with(&json!({"stop": ["\n", "", "END"], "user": "u".repeat(300), "messages": [
        {"role": "user", "content": " \n"}, {"role": "system", "content": "\n"},
        {"role": "assistant", "content": "\n\n", "tool_calls": [call("functions.f:0"), call("b")]},
        {"role": "user", "content": "Meanwhile."},
        {"role": "tool", "tool_call_id": "functions.f:0", "content": " "},
        {"role": "assistant", "content": null, "tool_calls": [call("b")]},
        {"role": "tool", "tool_call_id": "b", "content": null},
        {"role": "tool", "tool_call_id": "gone", "content": "late"},
        {"role": "assistant", "content": "Yes: "}]}));
    let written = request(&given).unwrap();
    assert_eq!(written["stop_sequences"], json!(["END"]));
    assert_eq!(written["metadata"]["user_id"].as_str().unwrap().len(), 256);
    assert_eq!((written.get("system"), &written["tool_choice"]), (None, &json!({"type": "none"})));
    let tool = json!({"name": "f", "input_schema": {"type": "object", "properties": {}}});
    assert_eq!(written["tools"], json!([tool]));
    let id = written["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(id.starts_with("functions_f_0-"), "{id}");
    let used = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"a": 1}});
    let result = |id: &str, content: Value| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let text = |text: &str| json!({"type": "text", "text": text});
    let missing = json!([text("No result was recorded.")]);
    let expected = json!([
        user("Begin."),
        {"role": "assistant", "content": [used(id), used("b")]},
        {"role": "user", "content": [result(id, json!([])), result("b", missing), text("Meanwhile.")]},
        {"role": "assistant", "content": [used("b-2")]},
        {"role": "user", "content": [result("b-2", json!([])), text("late")]},
        {"role": "assistant", "content": [text("Yes:")]}]);
    assert_eq!(written["messages"], expected);
}

#[test]
fn thoughts_go_back_to_the_provider_that_signed_them() {
    let written = messages(&json!([
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho", "reasoning_content": "Unsigned."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho", "thinking_blocks": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "redacted_thinking", "data": "d"}]}]));
    let text = json!({"type": "text", "text": "Ho"});
    assert_eq!(written[1]["content"], json!([text]));
    let thoughts = json!([
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"}, text]);
    assert_eq!(written[3]["content"], thoughts);
}

#[test]
fn pictures_and_files_are_blocks() {
    let part = |url: &str| json!({"type": "image_url", "image_url": {"url": url, "detail": "low"}});
    let pdf = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"}});
    let written = messages(&json!([{"role": "user", "content": [
        part("data:image/png;charset=x;base64,AAAA"), part("http://127.0.0.1/a.png"), pdf]}]));
    let expected = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "http://127.0.0.1/a.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"}}]);
    assert_eq!(written[0]["content"], expected);
}

#[test]
fn empty_texts_are_left_out_and_refusals_said() {
    let written = messages(&json!([
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Hi"}]},
        {"role": "assistant", "content": null, "refusal": "No."},
        {"role": "user", "content": ""}]));
    let refusal = json!({"role": "assistant", "content": [{"type": "text", "text": "No."}]});
    assert_eq!(written, json!([user("Hi"), refusal]));
}

#[test]
fn tools_and_their_choice_are_carried() {
    let tools = json!([
        {"type": "function", "function": {"name": "f", "description": "Does.", "parameters": {"type": "object"}, "strict": true}},
        {"type": "function", "function": {"name": "g"}},
        {"type": "function", "function": {"name": "g", "description": "Again."}}]);
    let written = request(&with(&json!({"tools": tools}))).unwrap();
    let expected = json!([
        {"name": "f", "description": "Does.", "input_schema": {"type": "object", "properties": {}}},
        {"name": "g", "input_schema": {"type": "object", "properties": {}}}]);
    assert_eq!((&written["tools"], written.get("tool_choice")), (&expected, None));
    let choice = |choice: Value, parallel: Value| {
        let fields =
            json!({"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel});
        request(&with(&fields)).unwrap()["tool_choice"].clone()
    };
    let none = Value::Null;
    assert_eq!(choice(json!("auto"), none.clone()), json!({"type": "auto"}));
    assert_eq!(choice(json!("required"), none.clone()), json!({"type": "any"}));
    assert_eq!(choice(json!("none"), json!(false)), json!({"type": "none"}));
    let one = json!({"type": "function", "function": {"name": "f"}});
    assert_eq!(choice(one, none.clone()), json!({"type": "tool", "name": "f"}));
    let alone = json!({"type": "auto", "disable_parallel_tool_use": true});
    assert_eq!(choice(none, json!(false)), alone);
}

#[test]
fn a_schema_for_the_answer_is_carried() {
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    let written = request(&with(&json!({"response_format": format}))).unwrap();
    let expected = json!({"format": {"type": "json_schema", "schema": {"type": "object"}}});
    assert_eq!(written["output_config"], expected);
    let without = |format: Value| refused(&json!({"response_format": format}));
    assert_eq!(without(json!({"type": "json_schema"})), "response_format.json_schema");
    let empty = json!({"type": "json_schema", "json_schema": {}});
    assert_eq!(without(empty), "response_format.json_schema.schema");
}

#[test]
fn unsupported_fields_are_named() {
    for (name, value) in [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("top_logprobs", json!(3)),
        ("logit_bias", json!({"5": 100})),
        ("functions", json!([{"name": "f"}])),
        ("function_call", json!("auto")),
        ("audio", json!({"voice": "x"})),
        ("modalities", json!(["text", "audio"])),
        ("web_search_options", json!({})),
        ("response_format", json!({"type": "json_object"})),
        ("max_tokens", json!("many")),
        ("temperature", json!("hot")),
        ("stop", json!(7)),
        ("messages", json!([])),
        ("messages", json!([{"role": "system", "content": "Only this."}])),
    ] {
        assert_eq!(refused(&json!({name: value})), name);
    }
    assert_eq!(refused(&json!({"stop": ["a", 1]})), "stop[1]");
    assert_eq!(
        refused(&json!({"tools": [{"type": "custom", "custom": {"name": "x"}}]})),
        "tools[0]"
    );
    let tools = json!([{"type": "function", "function": {"name": "f"}}]);
    assert_eq!(
        refused(&json!({"tools": tools, "tool_choice": {"type": "allowed_tools"}})),
        "tool_choice"
    );
}

#[test]
fn a_message_that_cannot_be_carried_is_named_by_its_place() {
    let one = |message: Value| refused(&json!({"messages": [message]}));
    let content = |part: Value| one(json!({"role": "user", "content": [part]}));
    assert_eq!(one(json!({"role": "function", "content": "x"})), "messages[0].role");
    assert_eq!(one(json!({"role": "user", "content": 7})), "messages[0].content");
    assert_eq!(one(json!({"role": "tool", "content": "x"})), "messages[0].tool_call_id");
    assert_eq!(
        one(json!({"role": "assistant", "function_call": {"name": "f"}})),
        "messages[0].function_call"
    );
    let call = json!({"role": "assistant", "tool_calls": [{"id": "a", "type": "custom"}]});
    assert_eq!(one(call), "messages[0].tool_calls[0]");
    let audio = json!({"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}});
    assert_eq!(content(audio), "messages[0].content[0]");
    let plain = json!({"type": "image_url", "image_url": {"url": "data:text/plain,x"}});
    assert_eq!(content(plain), "messages[0].content[0].image_url.url");
    let file = json!({"type": "file", "file": {"file_id": "x"}});
    assert_eq!(content(file), "messages[0].content[0].file.file_data");
    let picture = json!({"type": "image_url", "image_url": {"url": "http://127.0.0.1/"}});
    assert_eq!(one(json!({"role": "system", "content": [picture]})), "messages[0].content");
}
