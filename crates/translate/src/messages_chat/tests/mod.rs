//! The requests and answers of a Messages client, with answers as backends really give them.

mod grammar;
mod odd;
mod request;
mod stream;
mod whole;

use protocol::failure::BadAnswer;
use serde_json::{Value, json};

use super::answer;
use crate::{
    Context,
    answer::Body,
    kit::{self, delta},
};

fn context(streaming: bool) -> Context {
    let (id, model) = ("0123456789abcdef0123456789abcdef".into(), "claude-x".into());
    Context { id, created: 1_700_000_000, model, streaming }
}

/// All that a client gets for these pieces.
fn answered(
    streaming: bool,
    request: &Value,
    status: u16,
    body: Body,
    pieces: &[&[u8]],
) -> Result<String, BadAnswer> {
    let map = answer(&context(streaming), request.to_string().as_bytes());
    kit::answered(map, status, body, pieces)
}

/// A stream of these chunks, without an end.
fn events(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

/// A chunk that says why the answer is complete.
fn finish(reason: &str) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": null})
}
