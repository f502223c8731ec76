//! A request in any of the APIs.

use base::Endpoint;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

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

/// All that the demo takes from a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) api: Api,
    pub(super) model: String,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) max_tokens: Option<usize>,
    /// A guess: four bytes each.
    pub(super) prompt_tokens: usize,
    /// Of the prompt.
    pub(super) hash: u64,
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
        let prompt = prompt.map_or("", RawValue::get);
        Question {
            api,
            model: self.model,
            stream: self.stream == Some(true),
            include_usage: self.stream_options.and_then(|o| o.include_usage) == Some(true),
            max_tokens,
            prompt_tokens: prompt.len().div_ceil(4),
            hash: hash(prompt.as_bytes()),
        }
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
        assert_ne!(read(Api::Chat).hash, read(Api::Responses).hash);
    }

    #[test]
    fn a_body_that_is_too_large_is_refused_unread() {
        let piece = Bytes::from(vec![b' '; MAX_ASK / 2]);
        let pieces = [piece.clone(), piece, Bytes::from_static(b" ")];
        let problem = Question::read(Api::Chat, &pieces).unwrap_err();
        assert_eq!(problem, "the request is too large for the demo model");
    }
}
