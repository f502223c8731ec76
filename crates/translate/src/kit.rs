//! Steps that the tests of several pairs share.

use protocol::failure::BadAnswer;
use serde_json::{Value, json};

use crate::answer::{Answer, Body};

/// The object with these fields, too.
pub(crate) fn with_fields(mut object: Value, fields: &Value) -> Value {
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object
}

/// All that a client gets for these pieces.
pub(crate) fn answered(
    mut map: impl Answer,
    status: u16,
    body: Body,
    pieces: &[&[u8]],
) -> Result<String, BadAnswer> {
    map.head(status, body);
    let mut out = Vec::new();
    pieces.iter().try_for_each(|piece| map.feed(piece, &mut out))?;
    map.end(&mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// A chunk of Chat Completions with this delta.
pub(crate) fn delta(delta: &Value) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}
