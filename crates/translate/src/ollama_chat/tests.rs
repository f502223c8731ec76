//! The requests and answers of an Ollama client's chat.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};
use protocol::{failure::BadAnswer, json::BadRequest};
use serde_json::{Value, json};

use super::{answer, request};
use crate::{
    answer::{Answer, Body, Context},
    kit::with_fields,
};

fn context(streaming: bool) -> Context {
    Context { id: "ab".into(), created: 5, model: "m:latest".into(), streaming }
}

fn with(fields: &Value) -> Result<Value, BadRequest> {
    let said = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let body = with_fields(said, fields).to_string();
    Ok(serde_json::from_slice(&request(body.as_bytes(), &context(true))?).unwrap())
}

fn of_messages(messages: &Value) -> Result<Vec<Value>, BadRequest> {
    let sent = with(&json!({ "messages": messages }))?;
    Ok(sent["messages"].as_array().unwrap().clone())
}

#[test]
fn the_least_request_sets_nothing_by_itself() {
    let sent = with(&json!({"keep_alive": "5m", "options": {"num_ctx": 8192, "x": []}})).unwrap();
    let expected = json!({
        "model": "m", "messages": [{"role": "user", "content": "hi"}],
        "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(sent, expected);
}

#[test]
fn options_go_by_the_table_and_before_an_aliass_defaults() {
    let options = json!({
        "num_predict": 64.0, "temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "seed": 42,
        "stop": ["\n", "END"], "repeat_penalty": 1.1, "presence_penalty": 1.5, "frequency_penalty": 1,
    });
    let sent = with(&json!({"options": options, "temperature": 0.1, "max_tokens": 9})).unwrap();
    for (name, value) in options.as_object().unwrap() {
        let carried = if name == "num_predict" { "max_tokens" } else { name };
        assert_eq!(sent[carried].as_f64(), value.as_f64(), "{name}");
    }
    assert_eq!(sent["stop"], options["stop"]);
    let defaults = with(&json!({"temperature": 0.1, "max_tokens": 9})).unwrap();
    assert_eq!((&defaults["temperature"], &defaults["max_tokens"]), (&json!(0.1), &json!(9)));
    for endless in [-1, -2, 0] {
        let sent = with(&json!({"options": {"num_predict": endless, "stop": []}})).unwrap();
        assert_eq!((sent.get("max_tokens"), sent.get("stop")), (None, None));
    }
}

#[test]
fn thoughts_and_forms_are_asked_for() {
    let sent = |fields: &Value| with(fields).unwrap();
    for think in [true, false] {
        let words = &sent(&json!({ "think": think }))["chat_template_kwargs"];
        assert_eq!(*words, json!({ "enable_thinking": think }));
    }
    assert_eq!(sent(&json!({"think": "high"}))["reasoning_effort"], "high");
    assert_eq!(sent(&json!({"format": "json"}))["response_format"], json!({"type": "json_object"}));
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let form = &sent(&json!({ "format": schema }))["response_format"];
    assert_eq!((&form["type"], &form["json_schema"]["schema"]), (&json!("json_schema"), &schema));
    assert_eq!(sent(&json!({"format": ""})).get("response_format"), None);
}

#[test]
fn pictures_become_data_urls_of_their_own_type() {
    let jpeg = "/9j/4AAQ";
    let sent = of_messages(
        &json!([{"role": "user", "content": "look", "images": [jpeg, "iVBORw0KGgo="]}]),
    );
    let content = &sent.unwrap()[0]["content"];
    assert_eq!(content[0], json!({"type": "text", "text": "look"}));
    assert_eq!(content[1]["image_url"]["url"], format!("data:image/jpeg;base64,{jpeg}"));
    assert_eq!(content[2]["image_url"]["url"], "data:image/png;base64,iVBORw0KGgo=");
}

#[test]
fn results_find_their_calls_without_ids() {
    let call = |name: &str| json!({"function": {"name": name, "arguments": {"x": 1}}});
    let result =
        |name: &str, text: &str| json!({"role": "tool", "tool_name": name, "content": text});
    let sent = of_messages(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call("a"), call("b")]},
        result("b", "of b"),
        result("a", "of a"),
        {"role": "assistant", "tool_calls": [call("a")]},
        {"role": "tool", "content": "again"},
        {"role": "tool", "content": "nobody asked"},
    ]))
    .unwrap();
    let roles: Vec<&str> = sent.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "tool", "user"]);
    assert_eq!(sent[1]["reasoning_content"], "hm");
    assert_eq!(sent[1]["content"], Value::Null);
    assert_eq!(sent[1]["tool_calls"][0]["function"]["arguments"], r#"{"x":1}"#);
    for (result, call, text) in [
        (2, &sent[1]["tool_calls"][0], "of a"),
        (3, &sent[1]["tool_calls"][1], "of b"),
        (5, &sent[4]["tool_calls"][0], "again"),
    ] {
        assert_eq!(
            (&sent[result]["tool_call_id"], &sent[result]["content"]),
            (&call["id"], &json!(text))
        );
    }
    assert_ne!(sent[1]["tool_calls"][0]["id"], sent[4]["tool_calls"][0]["id"]);
}

#[test]
fn results_find_their_calls_by_id() {
    let call = |id: &str| json!({"id": id, "function": {"name": "a", "arguments": "{\"x\":2}"}});
    let sent = of_messages(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "tool_calls": [call("c1"), call("c2")]},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
    ]))
    .unwrap();
    assert_eq!((&sent[2]["tool_call_id"], &sent[2]["content"]), (&json!("c1"), &json!("one")));
    assert_eq!(sent[1]["tool_calls"][0]["function"]["arguments"], r#"{"x":2}"#);
}

#[test]
fn tools_are_carried() {
    let function = json!({"name": "f", "description": "d", "parameters": {"type": "object", "properties": {"a": {}}}});
    let sent = with(&json!({"tools": [{"type": "function", "function": function}, {"function": {"name": "g"}}]})).unwrap();
    assert_eq!(sent["tools"][0], json!({"type": "function", "function": function}));
    assert_eq!(sent["tools"][1]["function"]["parameters"]["type"], "object");
}

#[test]
fn what_cannot_be_read_is_named() {
    let user = |fields: Value| json!({"messages": [with_fields(json!({"role": "user", "content": "x"}), &fields)]});
    for (fields, param) in [
        (json!({"messages": []}), "messages"),
        (json!({"messages": null}), "messages"),
        (json!({"messages": "hi"}), "messages"),
        (json!({"messages": ["hi"]}), "messages[0]"),
        (user(json!({"role": "robot"})), "messages[0].role"),
        (user(json!({"role": null})), "messages[0].role"),
        (user(json!({"content": [{"type": "text", "text": "x"}]})), "messages[0].content"),
        (user(json!({"images": "aGk="})), "messages[0].images"),
        (user(json!({"images": ["data:image/png;base64,aGk="]})), "messages[0].images[0]"),
        (user(json!({"images": ["aGk=", "not base64"]})), "messages[0].images[1]"),
        (user(json!({"images": [7]})), "messages[0].images[0]"),
        (
            user(
                json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}),
            ),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            user(json!({"role": "assistant", "tool_calls": [{"function": {}}]})),
            "messages[0].tool_calls[0].function.name",
        ),
        (json!({"tools": {}}), "tools"),
        (json!({"tools": [{}]}), "tools[0].function"),
        (json!({"tools": [{"function": {"name": 7}}]}), "tools[0].function.name"),
        (json!({"format": "xml"}), "format"),
        (json!({"format": []}), "format"),
        (json!({"think": "much"}), "think"),
        (json!({"think": 7}), "think"),
        (json!({"options": []}), "options"),
        (json!({"options": {"temperature": "hot"}}), "options.temperature"),
        (json!({"options": {"temperature": -0.1}}), "options.temperature"),
        (json!({"options": {"top_p": 1.5}}), "options.top_p"),
        (json!({"options": {"num_predict": "7"}}), "options.num_predict"),
        (json!({"options": {"stop": 7}}), "options.stop"),
        (json!({"options": {"stop": ["a", 7]}}), "options.stop[1]"),
    ] {
        let refused = with(&fields).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some(param), "{fields}: {refused}");
        assert!(refused.message.contains(&format!("`{param}`")), "{refused}");
    }
    let huge = br#"{"model":"m","messages":[{"role":"user","content":"x"}],"options":{"temperature":1e999}}"#;
    assert_eq!(
        request(huge, &context(true)).unwrap_err().param.as_deref(),
        Some("options.temperature")
    );
}

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\u{2028}\\\"é\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"name\":\"g\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

/// The answer to a client; each piece comes 10 ns after the one before.
fn answered(
    given: &Value,
    streaming: bool,
    kind: Body,
    pieces: &[&[u8]],
) -> Result<String, BadAnswer> {
    let mut map = answer(&context(streaming), given.to_string().as_bytes());
    map.head(200, kind);
    let mut out = Vec::new();
    for (at, piece) in (1..).zip(pieces) {
        map.passed(Duration::from_nanos(at * 10));
        map.feed(piece, &mut out)?;
    }
    map.passed(Duration::from_nanos(100));
    map.end(&mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn lines(text: &str) -> Vec<Value> {
    assert!(text.ends_with('\n'), "{text:?}");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_stream_comes_in_lines_and_calls_in_one_piece() {
    let text = answered(&json!({}), true, Body::Events, &[STREAM.as_bytes()]).unwrap();
    assert!(!text.contains('\u{2028}'), "some clients end a line there");
    let lines = lines(&text);
    for line in &lines {
        assert_eq!(line["model"], "m:latest");
        assert!(line["created_at"].as_str().unwrap().starts_with("1970-01-01T00:00:05.0000000"));
        assert_eq!(line["message"]["role"], "assistant");
    }
    let messages: Vec<&Value> = lines.iter().map(|line| &line["message"]).collect();
    assert_eq!((&messages[0]["thinking"], &messages[0]["content"]), (&json!("hm"), &json!("")));
    assert_eq!(messages[1]["content"], "a\u{2028}\"é");
    assert_eq!(
        messages[2]["tool_calls"],
        json!([{"id": "c", "function": {"index": 0, "name": "f", "arguments": {"x": 1}}}])
    );
    let second = &messages[3]["tool_calls"][0];
    assert_eq!(
        (&second["id"], &second["function"]["arguments"]),
        (&json!("call_ab_1"), &json!({}))
    );
    let last = lines.last().unwrap();
    assert_eq!((&last["done"], &last["done_reason"]), (&json!(true), &json!("stop")));
    assert_eq!((&last["prompt_eval_count"], &last["eval_count"]), (&json!(7), &json!(3)));
    let times = ["total_duration", "prompt_eval_duration", "eval_duration", "load_duration"];
    let nanos: Vec<u64> = times.iter().map(|time| last[*time].as_u64().unwrap()).collect();
    assert_eq!(nanos, [10, 10, 0, 0]);
    assert!(lines.iter().rev().skip(1).all(|line| line["done"] == false));
}

#[test]
fn a_whole_answer_is_one_object() {
    let whole = json!({"choices": [{"finish_reason": "length", "message": {"content": "Hi", "reasoning": "hm",
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{\"x\":1}"}}]}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3}});
    for (kind, pieces) in [(Body::Json, whole.to_string()), (Body::Events, STREAM.to_owned())] {
        let text = answered(&json!({}), false, kind, &[pieces.as_bytes()]).unwrap();
        let object: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["done"], true);
        assert_eq!(object["message"]["thinking"], "hm");
        assert_eq!(object["message"]["tool_calls"][0]["function"]["arguments"], json!({"x": 1}));
        assert_eq!(object["eval_count"], 3);
    }
    let text = answered(&json!({}), false, Body::Json, &[whole.to_string().as_bytes()]).unwrap();
    let object: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&object["done_reason"], &object["message"]["content"]),
        (&json!("length"), &json!("Hi"))
    );
    assert_eq!(
        (&object["eval_duration"], &object["prompt_eval_duration"]),
        (&json!(100), &json!(0))
    );
}

#[test]
fn thoughts_that_nobody_wants_are_left_out() {
    let text =
        answered(&json!({"think": false}), true, Body::Events, &[STREAM.as_bytes()]).unwrap();
    assert!(!text.contains("thinking"), "{text}");
}

#[test]
fn errors_are_one_text_before_and_in_a_stream() {
    let error = br#"{"error":{"message":"no \"room\"","type":"x"}}"#;
    let mut map = answer(&context(true), b"{}");
    assert_eq!(map.head(503, Body::Json), (503, Body::Json));
    let mut out = Vec::new();
    map.feed(error, &mut out).unwrap();
    map.end(&mut out).unwrap();
    assert_eq!(out, br#"{"error":"no \"room\""}"#);
    let stream = [b"data: ".as_slice(), error, b"\n\n"].concat();
    let text = answered(&json!({}), true, Body::Events, &[&stream]).unwrap();
    assert_eq!(text, "{\"error\":\"no \\\"room\\\"\"}\n");
    assert!(answered(&json!({}), false, Body::Events, &[&stream]).is_err());
    let cut = &STREAM.as_bytes()[..STREAM.find("data: {\"choices\":[{\"delta\":{},").unwrap()];
    let text = answered(&json!({}), true, Body::Events, &[cut]).unwrap();
    assert!(text.lines().last().unwrap().starts_with("{\"error\""), "{text}");
}

#[test]
fn arguments_that_are_no_object_fail_the_answer() {
    for arguments in ["[1]", "{\\\"x\\\":", "7"] {
        let stream = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}}}]}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        );
        let failed = answered(&json!({}), true, Body::Events, &[stream.as_bytes()]).unwrap_err();
        assert!(failed.0.contains("the call of f"), "{}", failed.0);
    }
}

proptest! {
    #[test]
    fn splitting_changes_nothing_but_times(cuts in vec(0..STREAM.len(), 0..6)) {
        let mut cuts = cuts;
        cuts.extend([0, STREAM.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
        let timeless = |pieces: &[&[u8]]| {
            let mut lines = lines(&answered(&json!({}), true, Body::Events, pieces).unwrap());
            for line in &mut lines {
                let object = line.as_object_mut().unwrap();
                object.retain(|name, _| !name.ends_with("_duration") && name != "created_at");
            }
            lines
        };
        prop_assert_eq!(timeless(&pieces), timeless(&[STREAM.as_bytes()]));
    }
}
