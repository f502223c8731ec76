//! Real messages of stock peers, read and written again.

use base::Thermal;
use serde_json::{Value, json};

mod any;
mod odd;

use super::cluster::{ClusterMessage, Dialect, FailedRequest, decode, encode};

const ACK: &str = r#"{"heartbeatAck":{"_0":{"deviceID":"e1ec2fdc-1","ewmaTokensPerSecond":11.701959398730677,"isGenerating":false,"loadedModels":["qwen/qwen3-8b"],"queueDepth":0,"thermalLevel":"nominal","throttleLevel":100,"timestamp":816863469.5409098}}}"#;

fn again(text: &str) -> Value {
    let decoded = decode(text.as_bytes()).unwrap();
    serde_json::from_slice(&encode(&decoded.message, decoded.dialect)).unwrap()
}

#[test]
fn real_messages_are_written_as_they_were_read() {
    let chunk = r#"{"inferenceChunk":{"_0":{"chunk":{"choices":[{"delta":{"content":"t0 "},"finish_reason":null,"index":0}],"created":1795170660,"id":"chatcmpl-mock","model":"mock-model","object":"chat.completion.chunk"},"requestID":"26543350-1"}}}"#;
    let complete = r#"{"inferenceComplete":{"_0":{"requestID":"26543350-1","tokensOut":4}}}"#;
    let error = r#"{"inferenceError":{"_0":{"code":"unavailable","errorMessage":"node is shutting down","requestID":"r"}}}"#;
    let load = r#"{"modelLoadError":{"_0":{"modelID":"x/y","reason":"not_swappable: model not in config.swappable_models","requestID":"a3f6d7c0"}}}"#;
    for text in [ACK, chunk, complete, error, load] {
        assert_eq!(again(text), serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn the_flat_form_is_read_as_well() {
    let flat = r#"{"modelQuery":{"modelID":"org\/m"}}"#;
    let decoded = decode(flat.as_bytes()).unwrap();
    assert_eq!(decoded.dialect, Dialect::Flat);
    assert_eq!(again(flat), json!({"modelQuery": {"modelID": "org/m"}}));
}

#[test]
fn unknown_or_mistyped_fields_cost_no_message() {
    let odd = json!({"heartbeat": {"thermalLevel": "tepid", "throttleLevel": 74.6, "queueDepth": "3",
        "loadedModels": ["a", 1], "timestamp": 1, "colour": "red"}});
    let ClusterMessage::Heartbeat(heartbeat) = decode(odd.to_string().as_bytes()).unwrap().message
    else {
        panic!("a heartbeat");
    };
    assert_eq!(heartbeat.thermal_level, Thermal::Nominal);
    assert_eq!((heartbeat.throttle_level, heartbeat.queue_depth), (75, 3));
    assert_eq!(
        (heartbeat.loaded_models, &heartbeat.extra["colour"]),
        (vec!["a".into()], &json!("red"))
    );
}

#[test]
fn a_bad_message_tells_what_it_asked_for() {
    let bad = decode(br#"{"inferenceRequest":{"_0":{"requestID":"AB"}}}"#).unwrap_err();
    assert_eq!((bad.kind.as_str(), bad.dialect), ("inferenceRequest", Dialect::Wrapped));
    assert_eq!(bad.request, Some(FailedRequest::Inference("ab".into())));
    for nothing in ["", "null", "{}", "[]", "1", "{\"hello\":null}", "{\"x\":{}}", "\"hello\""] {
        assert_eq!(decode(nothing.as_bytes()).unwrap_err().request, None, "{nothing}");
    }
}
