//! A request in any of the APIs.

use base::Endpoint;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::text;

/// The longest body that the demo reads, in bytes.
pub const MAX_ASK: usize = 128 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Completions,
    Messages,
    Responses,
}

impl Api {
    /// The API of an endpoint, if the demo supports it.
    pub(super) fn of(endpoint: Endpoint) -> Option<Self> {
        match endpoint {
            Endpoint::ChatCompletions => Some(Self::Chat),
            Endpoint::Completions => Some(Self::Completions),
            Endpoint::Messages => Some(Self::Messages),
            Endpoint::Responses => Some(Self::Responses),
            _ => None,
        }
    }
}

/// The parts of a request that the demo uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<usize>,
    /// An estimate: four bytes for each token.
    pub(super) prompt_tokens: usize,
    /// The conversation before the answer, as text.
    pub(super) prompt: String,
    /// The beginning of the answer.
    pub(super) begun: String,
}

impl Question {
    pub(super) fn read(api: Api, body: &[Bytes]) -> Result<Self, String> {
        if body.iter().map(Bytes::len).sum::<usize>() > MAX_ASK {
            return Err("the request is too large for the demo model".to_owned());
        }
        let body = match body {
            [whole] => whole.clone(),
            pieces => pieces.concat().into(),
        };
        let fields: Fields<'_> = serde_json::from_slice(&body)
            .map_err(|error| format!("the request cannot be read: {error}"))?;
        Ok(fields.question(api))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    model: String,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    max_tokens: Option<usize>,
    #[serde(default)]
    max_completion_tokens: Option<usize>,
    #[serde(default)]
    max_output_tokens: Option<usize>,
    #[serde(default, borrow)]
    messages: Option<&'a RawValue>,
    #[serde(default, borrow)]
    prompt: Option<&'a RawValue>,
    #[serde(default, borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

impl Fields<'_> {
    fn question(self, api: Api) -> Question {
        let (prompt, max_tokens) = match api {
            Api::Chat => (self.messages, self.max_completion_tokens.or(self.max_tokens)),
            Api::Messages => (self.messages, self.max_tokens),
            Api::Completions => (self.prompt, self.max_tokens),
            Api::Responses => (self.input, self.max_output_tokens),
        };
        let raw = prompt.map_or("null", RawValue::get);
        let (prompt, begun) = said(api, raw);
        Question {
            api,
            model: self.model,
            stream: self.stream == Some(true),
            include_usage: self.stream_options.and_then(|o| o.include_usage) == Some(true),
            max_tokens,
            prompt_tokens: if raw == "null" { 0 } else { raw.len().div_ceil(4) },
            prompt,
            begun,
        }
    }
}

/// The conversation before the answer, and the beginning of the answer if the last message is the
/// assistant's.
fn said(api: Api, raw: &str) -> (String, String) {
    let value: Value = serde_json::from_str(raw).unwrap_or_default();
    match (api, value) {
        (Api::Completions, value) => {
            let text = value.as_str().or(value[0].as_str()).unwrap_or(raw);
            let (prompt, begun) = text::split_prompt(text);
            (prompt.to_owned(), begun.to_owned())
        }
        (_, Value::Array(mut messages)) => {
            let begun = messages.pop_if(|last| last["role"] == "assistant");
            let prompt = messages.iter().map(words).collect::<Vec<_>>().join("\n");
            (prompt, begun.as_ref().map(words).unwrap_or_default())
        }
        (_, Value::String(text)) => (text, String::new()),
        _ => (raw.to_owned(), String::new()),
    }
}

/// The text of a message.
fn words(message: &Value) -> String {
    let content = &message["content"];
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().map_or_else(|| parts.collect(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_has_its_own_names() {
        let body = br#"{"model":"m","stream":true,"stream_options":{"include_usage":true},
            "max_tokens":1,"max_completion_tokens":2,"max_output_tokens":3,
            "messages":["12345"],"input":"x","other":{}}"#;
        let (front, back) = body.split_at(20);
        let pieces = [Bytes::from_static(front), Bytes::from_static(back)];
        let read = |api| Question::read(api, &pieces).unwrap();
        assert_eq!(read(Api::Chat).max_tokens, Some(2));
        assert_eq!(read(Api::Messages).max_tokens, Some(1));
        assert_eq!(read(Api::Responses).max_tokens, Some(3));
        assert!(read(Api::Chat).stream && read(Api::Chat).include_usage);
        assert_eq!((read(Api::Chat).prompt_tokens, read(Api::Responses).prompt_tokens), (3, 1));
        assert_eq!((&*read(Api::Responses).prompt, &*read(Api::Responses).begun), ("x", ""));
    }

    #[test]
    fn what_the_assistant_said_last_is_the_beginning_of_the_answer() {
        let read = |api, body: &str| {
            let question = Question::read(api, &[Bytes::copy_from_slice(body.as_bytes())]).unwrap();
            (question.prompt, question.begun)
        };
        let both = ("hi".to_owned(), "This ".to_owned());
        let messages = r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"text":"This "}]}]}"#;
        assert_eq!(read(Api::Chat, messages), both);
        assert_eq!(read(Api::Completions, r#"{"model":"m","prompt":"hiThis "}"#), both);
        let other = r#"{"model":"m","prompt":"hiThis one"}"#;
        assert_eq!(read(Api::Completions, other), ("hiThis one".to_owned(), String::new()));
    }

    #[test]
    fn a_body_that_is_too_large_is_refused_unread() {
        let piece = Bytes::from(vec![b' '; MAX_ASK / 2]);
        let pieces = [piece.clone(), piece, Bytes::from_static(b" ")];
        let problem = Question::read(Api::Chat, &pieces).unwrap_err();
        assert_eq!(problem, "the request is too large for the demo model");
    }
}
