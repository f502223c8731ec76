//! The requests and answers of a client of the legacy Completions.

use proptest::{collection::vec, prelude::*};
use protocol::{failure::BadAnswer, json::BadRequest};
use serde_json::{Value, json};

use super::{answer, request};
use crate::{
    answer::{Answer, Body, Context},
    kit::{self, with_fields},
};

fn context(streaming: bool) -> Context {
    Context { id: "ab".into(), created: 5, model: "fast".into(), streaming }
}

fn with(fields: &Value) -> Result<Value, BadRequest> {
    let body = with_fields(json!({"model": "m", "prompt": "Once"}), fields);
    let chat = request(body.to_string().as_bytes(), &context(false))?;
    Ok(serde_json::from_slice(&chat).unwrap())
}

fn answered(
    streaming: bool,
    request: &Value,
    body: Body,
    pieces: &[&[u8]],
) -> Result<String, BadAnswer> {
    let map = answer(&context(streaming), request.to_string().as_bytes());
    kit::answered(map, 200, body, pieces)
}

#[test]
fn a_prompt_is_the_users_message() {
    let message = json!([{"role": "user", "content": "Once"}]);
    assert_eq!(
        with(&json!({})).unwrap(),
        json!({"model": "m", "messages": message, "stream": false})
    );
    let all = json!({
        "prompt": ["Once"], "stream": true, "max_tokens": 3, "temperature": 0, "top_p": 0.5, "stop": ["x"],
        "seed": 1, "n": 1, "best_of": 1, "echo": false, "suffix": null, "logprobs": null, "user": "u",
        "frequency_penalty": 1, "presence_penalty": 2, "logit_bias": {"5": 1}, "top_k": 4,
    });
    assert_eq!(
        with(&all).unwrap(),
        json!({
            "model": "m", "messages": message, "stream": true, "stream_options": {"include_usage": true},
            "max_tokens": 3, "temperature": 0, "top_p": 0.5, "stop": ["x"], "seed": 1, "user": "u",
            "frequency_penalty": 1, "presence_penalty": 2, "logit_bias": {"5": 1}, "top_k": 4,
        })
    );
}

#[test]
fn fields_unknown_to_chat_are_named() {
    for (name, value) in [
        ("prompt", json!(["a", "b"])),
        ("prompt", json!([])),
        ("prompt", json!([1, 2])),
        ("prompt", json!([[1, 2]])),
        ("prompt", json!(7)),
        ("prompt", Value::Null),
        ("suffix", json!("end")),
        ("echo", json!(true)),
        ("logprobs", json!(0)),
        ("best_of", json!(2)),
        ("n", json!(2)),
    ] {
        let refused = with(&json!({name: value})).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some(name), "{value}");
        assert!(refused.message.contains(name), "{refused}");
    }
}

const STREAM: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning\":\"hm\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a \\\"b\\\"\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\\n\"},\"finish_reason\":\"length\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":2,\"completion_tokens\":3}}\n\n",
    "data: [DONE]\n\n",
);

fn chunk(text: &str, finish: &Value) -> Value {
    json!({"id": "cmpl-ab", "object": "text_completion", "created": 5, "model": "fast", "choices": [{"index": 0, "text": text, "logprobs": null, "finish_reason": finish}]})
}

fn usage() -> Value {
    json!({"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5})
}

#[test]
fn a_stream_is_chunks_of_text() {
    let mut chunks = vec![
        chunk("a \"b\"", &Value::Null),
        chunk("\n", &Value::Null),
        chunk("", &json!("length")),
    ];
    for include_usage in [false, true] {
        let request = json!({"stream_options": {"include_usage": include_usage}});
        let text = answered(true, &request, Body::Events, &[STREAM.as_bytes()]).unwrap();
        let lines: Vec<&str> = text.split_terminator("\n\n").collect();
        let (done, read) = lines.split_last().unwrap();
        assert_eq!(*done, "data: [DONE]");
        if include_usage {
            let mut last = chunk("", &Value::Null);
            last["choices"] = json!([]);
            last["usage"] = usage();
            chunks.push(last);
        }
        let read: Vec<Value> =
            read.iter().map(|it| serde_json::from_str(&it["data: ".len()..]).unwrap()).collect();
        assert_eq!(read, chunks);
    }
}

#[test]
fn a_whole_answer_is_one_object() {
    let mut expected = chunk("a \"b\"\n", &json!("length"));
    expected["usage"] = usage();
    let text = answered(false, &json!({}), Body::Events, &[STREAM.as_bytes()]).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
    let plain = json!({"choices": [{"message": {"content": "a \"b\"\n"}, "finish_reason": "length"}], "usage": usage()});
    let text = answered(false, &json!({}), Body::Json, &[plain.to_string().as_bytes()]).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected);
}

#[test]
fn errors_are_told_where_they_happen() {
    let stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\"}}\n\n";
    let text = answered(true, &json!({}), Body::Events, &[stream]).unwrap();
    let end = "data: {\"error\":{\"message\":\"gone\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n";
    assert!(text.ends_with(end), "{text}");
    let cut = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let text = answered(true, &json!({}), Body::Events, &[cut]).unwrap();
    assert!(text.contains("\"error\"") && !text.contains("[DONE]"));
    let mut map = answer(&context(true), b"{}");
    assert_eq!(map.head(429, Body::Json), (429, Body::Json));
}

proptest! {
    #[test]
    fn splitting_changes_nothing(cuts in vec(0..STREAM.len(), 0..6), streaming: bool) {
        let mut cuts = cuts;
        cuts.extend([0, STREAM.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|cut| &STREAM.as_bytes()[cut[0]..cut[1]]).collect();
        let split = answered(streaming, &json!({}), Body::Events, &pieces).unwrap();
        let whole = answered(streaming, &json!({}), Body::Events, &[STREAM.as_bytes()]).unwrap();
        prop_assert_eq!(split, whole);
    }
}
