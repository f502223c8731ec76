//! The rules that hold for any input, and the bound of an answer.

use proptest::{collection::vec, prelude::*};
use protocol::failure::MAX_KEPT;
use serde_json::{Value, json};

use super::{super::answer::Response, answered, context, delta, events, finish, grammar};
use crate::{
    answer::Body,
    chat::{Finish, Outcome, Part, Usage, Writer},
};

/// Any JSON, of words that mean something somewhere.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("function".to_owned()),
        Just("message".to_owned()),
        Just("user".to_owned()),
        Just("input_text".to_owned()),
        Just("custom".to_owned()),
        "[a-z\"\\\\\n]{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let names = [
        "model",
        "input",
        "instructions",
        "tools",
        "type",
        "role",
        "content",
        "text",
        "name",
        "call_id",
        "arguments",
        "output",
        "choices",
        "delta",
        "message",
        "tool_calls",
        "function",
        "index",
        "id",
        "usage",
        "error",
        "tool_choice",
        "format",
        "reasoning",
        "finish_reason",
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((proptest::sample::select(names.to_vec()), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
            }),
        ]
    })
}

/// A chunk that a backend could send.
fn chunk() -> impl Strategy<Value = Value> {
    let call = (0..3u32, "[ab]?", "(f|c|)", "[{}\":a]{0,4}").prop_map(|(index, id, name, text)| {
        delta(&json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": text}}]}))
    });
    prop_oneof![
        "[a-c\"\n ]{0,4}".prop_map(|text| delta(&json!({"content": text}))),
        "[a-c]{0,4}".prop_map(|text| delta(&json!({"reasoning": text}))),
        call,
        Just(json!({"choices": [], "usage": {"prompt_tokens": 1}})),
        Just(finish("tool_calls")),
        Just(json!({"error": {"message": "no"}})),
    ]
}

fn request() -> Value {
    json!({"tools": [{"type": "custom", "name": "c"}, {"type": "function", "name": "f"}]})
}

proptest! {
    #[test]
    fn every_stream_is_in_order(chunks in vec(chunk(), 0..12), ends: bool) {
        let stream = events(&chunks);
        let cut = if ends { stream.len() } else { stream.len() - "data: [DONE]\n\n".len() };
        let pieces = [&stream.as_bytes()[..cut]];
        grammar::read(&answered(true, &request(), 200, Body::Events, &pieces).unwrap());
    }

    #[test]
    fn splitting_changes_nothing(chunks in vec(chunk(), 0..8), cuts in vec(0usize..2000, 0..6)) {
        let stream = events(&chunks);
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> =
            cuts.windows(2).map(|cut| &stream.as_bytes()[cut[0]..cut[1]]).collect();
        let split = answered(true, &request(), 200, Body::Events, &pieces).unwrap();
        let whole = answered(true, &request(), 200, Body::Events, &[stream.as_bytes()]).unwrap();
        prop_assert_eq!(split, whole);
    }

    #[test]
    fn any_json_is_survived(one in any_json(), other in any_json()) {
        let translated = super::super::request(one.to_string().as_bytes(), &context(true));
        if let Ok(body) = translated {
            prop_assert!(serde_json::from_slice::<Value>(&body).is_ok());
        }
        for streaming in [false, true] {
            for body in [Body::Json, Body::Events] {
                let text = match body {
                    Body::Json => other.to_string(),
                    _ => events(std::slice::from_ref(&other)),
                };
                let _ = answered(streaming, &one, 200, body, &[text.as_bytes()]);
            }
        }
    }
}

#[test]
fn an_endless_answer_fails_the_response() {
    let mut writer = Response::new(&context(true), b"{}");
    let mut out = Vec::new();
    writer.begin(&mut out);
    writer.open(&Part::Text, &mut out);
    let mebibyte = "x".repeat(1024 * 1024);
    for _ in 0..MAX_KEPT / mebibyte.len() {
        out.clear();
        writer.delta(&mebibyte, &mut out);
        assert!(out.starts_with(b"event: response.output_text.delta\n"));
    }
    out.clear();
    writer.delta("x", &mut out);
    assert!(out.starts_with(b"event: response.failed\n"));
    out.clear();
    writer.delta("x", &mut out);
    writer.open(&Part::Text, &mut out);
    let outcome = Outcome { finish: Finish::Stop, stop_sequence: None, usage: Usage::default() };
    writer.finish(&outcome, &mut out).unwrap();
    assert!(out.is_empty());
}
