//! Requests of every API whose answers have known tokens: what a client asks, and what a backend answers.

use serde_json::{Value, json};
use testkit::{Gate, Received, Reply};

/// An API that clients ask by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Completions,
    Messages,
    Responses,
    Embeddings,
}

pub(crate) const APIS: [Api; 5] =
    [Api::Chat, Api::Completions, Api::Messages, Api::Responses, Api::Embeddings];

/// The paths that a backend here is asked; the other APIs are translated.
pub(crate) const PATHS: [&str; 3] = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"];

impl Api {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Messages => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Embeddings => "/v1/embeddings",
        }
    }

    pub(crate) fn body(self, model: &str, stream: bool, text: &str) -> Value {
        let messages = json!([{"role": "user", "content": text}]);
        match self {
            Self::Chat => json!({"model": model, "stream": stream, "messages": messages}),
            Self::Completions => json!({"model": model, "stream": stream, "prompt": text}),
            Self::Messages => {
                json!({"model": model, "stream": stream, "max_tokens": 99, "messages": messages})
            }
            Self::Responses => json!({"model": model, "stream": stream, "input": text}),
            Self::Embeddings => json!({"model": model, "input": text}),
        }
    }

    /// The last text of a stream that came to its end.
    pub(crate) fn last(self) -> &'static str {
        match self {
            Self::Chat | Self::Completions | Self::Embeddings => "data: [DONE]",
            Self::Messages => "event: message_stop",
            Self::Responses => "event: response.completed",
        }
    }
}

/// The tokens of a request: of its prompt, and of its answer. A token of an answer is a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
}

impl Tokens {
    /// Those of the request of this number.
    pub(crate) fn of(number: u64) -> Self {
        Self { prompt: number % 97 + 3, completion: number % 23 + 2 }
    }

    fn usage(self) -> Value {
        let Self { prompt, completion } = self;
        json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
    }
}

/// The number that follows a name in a request's text.
pub(crate) fn number_in(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// A backend's answer of these tokens. Each word of it is `word`.
pub(crate) fn answer(received: &Received, body: &Value, tokens: Tokens, word: &str) -> Reply {
    if received.target.starts_with("/v1/embeddings") {
        return Reply::json(200, &embedding(body, tokens.prompt));
    }
    let legacy = received.target.starts_with("/v1/completions");
    match body["stream"] == true {
        true => Reply::stream(stream(body, tokens, legacy, word), &Gate::opened()),
        false => Reply::json(200, &whole(body, tokens, legacy, word)),
    }
}

fn embedding(body: &Value, prompt: u64) -> Value {
    json!({
        "object": "list",
        "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
        "model": body["model"],
        "usage": {"prompt_tokens": prompt, "total_tokens": prompt},
    })
}

fn whole(body: &Value, tokens: Tokens, legacy: bool, word: &str) -> Value {
    let text = word.repeat(usize::try_from(tokens.completion).unwrap_or_default());
    let choice = match legacy {
        true => json!({"index": 0, "text": text, "finish_reason": "stop"}),
        false => json!({
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }),
    };
    json!({"id": "c", "object": "x", "created": 0, "model": body["model"], "choices": [choice],
        "usage": tokens.usage()})
}

/// As backends do: the usage comes last, and only when it was asked for.
fn stream(body: &Value, tokens: Tokens, legacy: bool, word: &str) -> Vec<String> {
    let model = &body["model"];
    let mut events = match legacy {
        true => (0..tokens.completion)
            .map(|_| event(model, &json!({"index": 0, "text": word})))
            .collect(),
        false => deltas(model, tokens.completion, word),
    };
    let mut last = json!({"index": 0, "delta": {}, "finish_reason": "stop"});
    if legacy {
        last = json!({"index": 0, "text": "", "finish_reason": "stop"});
    }
    events.push(event(model, &last));
    if body["stream_options"]["include_usage"] == true {
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0,
            "model": model, "choices": [], "usage": tokens.usage()});
        events.push(format!("data: {chunk}\n\n"));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// The events of `count` words of a chat.
pub(crate) fn deltas(model: &Value, count: u64, word: &str) -> Vec<String> {
    let delta = || event(model, &json!({"index": 0, "delta": {"content": word}}));
    (0..count).map(|_| delta()).collect()
}

fn event(model: &Value, choice: &Value) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": model,
        "choices": [choice]});
    format!("data: {chunk}\n\n")
}
