//! Request bodies: the peek agrees with a full parse, its spans hold the values, and replacing
//! the model changes nothing else.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::openai::{BadBody, Peek, peek, replace_model};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let value = serde_json::from_slice::<Value>(data).ok();
    match peek(data) {
        Ok(found) => check(data, found, value.as_ref()),
        Err(BadBody::NotJson { .. } | BadBody::NotUtf8(_)) => assert_eq!(value, None),
        Err(BadBody::NotAnObject) => assert!(!value.is_some_and(|value| value.is_object())),
        Err(BadBody::ModelMissing) => {
            assert!(value.is_none_or(|value| value.get("model").is_none()));
        }
        Err(_) => {}
    }
});

fn check(data: &[u8], found: Peek, value: Option<&Value>) {
    let model: String = serde_json::from_slice(&data[found.model_span.clone()]).unwrap();
    assert_eq!(model, found.model);
    if let Some(value) = value {
        assert_eq!(value["model"], Value::from(model));
        assert_eq!(value.get("stream").unwrap_or(&Value::from(false)), &Value::from(found.stream));
    }
    let parts = found.prompt_parts(data);
    let renamed = replace_model(&Bytes::copy_from_slice(data), found.model_span, "x\"\\");
    let again = peek(&renamed).unwrap();
    assert_eq!((again.model.as_str(), again.stream), ("x\"\\", found.stream));
    assert_eq!(again.prompt_parts(&renamed), parts);
}
