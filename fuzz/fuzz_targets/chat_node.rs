//! Chat Completions for a node: nothing panics, a task is one that nodes know, and the answer is
//! the same however the node cuts its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use translate::{
    Context,
    chat_node::{Next, Order, answer, request},
};

fuzz_target!(|data: (&[u8], &str, u8)| {
    let (body, text, size) = data;
    let Ok(order) = request(body) else { return };
    let size = usize::from(size).max(1);
    assert_eq!(said(&order, text, size), said(&order, text, text.len().max(1)));
    let task = order.task(1, 0);
    assert!((0.0..1.0).contains(&task.temperature) && task.max_new_tokens > 0);
});

/// The answer's text, without its chunks.
fn said(order: &Order, text: &str, size: usize) -> String {
    let context = Context {
        id: "0".repeat(32),
        created: 0,
        model: "m".to_owned(),
        streaming: order.streaming(),
    };
    let mut answer = answer(&context, order);
    let (mut out, mut next) = (String::new(), Next::More);
    for piece in text.as_bytes().chunks(size) {
        next = answer.feed(piece, &mut out).unwrap();
        if next == Next::Stopped {
            break;
        }
    }
    answer.end(next, &mut out).unwrap();
    if !order.streaming() {
        return out;
    }
    let data = out.split("\n\n").filter_map(|event| event.strip_prefix("data: {"));
    let content = |data: &str| {
        let chunk: serde_json::Value = serde_json::from_str(&format!("{{{data}")).unwrap();
        chunk["choices"][0]["delta"]["content"].as_str().unwrap_or_default().to_owned()
    };
    data.map(content).collect()
}
