//! Chats as OpenAI's API has them: what is asked, and what a model says.

use serde_json::{Value, json};

/// Where a chat is asked for.
pub const CHAT: &str = "/v1/chat/completions";

/// A request for a chat, which works on Anthropic's path, too.
pub fn ask(model: &str, stream: bool) -> Value {
    json!({
        "model": model, "stream": stream, "max_tokens": 9,
        "messages": [{"role": "user", "content": "hi"}],
    })
}

/// A whole answer of 3 and 4 tokens.
pub fn completion(text: &str) -> Value {
    let message = json!({"role": "assistant", "content": text});
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    })
}

/// A piece of a streamed answer.
pub fn delta(text: &str) -> String {
    let choice = json!({"index": 0, "delta": {"content": text}, "finish_reason": null});
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [choice],
    });
    format!("data: {chunk}\n\n")
}

/// The end of a streamed answer, with the same tokens.
pub const FINISH: &str = concat!(
    "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",",
    "\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],",
    "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n",
    "data: [DONE]\n\n",
);

/// The text of a streamed answer.
pub fn said(stream: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunks = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    chunks
        .filter_map(|chunk| Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned()))
        .collect()
}
