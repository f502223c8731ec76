//! The requests and answers of a Responses client, with answers as backends really give them.

mod bounds;
mod grammar;
mod input;
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
    Context {
        id: "0123456789abcdef0123456789abcdef".into(),
        created: 1_700_000_000,
        model: "fast".into(),
        streaming,
    }
}

/// A stream of these chunks, ended as the API ends it.
fn events(chunks: &[Value]) -> String {
    let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    lines + "data: [DONE]\n\n"
}

/// A chunk that says why the answer is complete.
fn finish(reason: &str) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// The client's stream for a provider's stream.
fn streamed(request: &Value, stream: &str) -> Vec<Value> {
    let text = answered(true, request, 200, Body::Events, &[stream.as_bytes()]).unwrap();
    grammar::read(&text)
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
