//! The side parse of a body of Ollama's API.
//!
//! `/api/chat` is the path of two APIs. A body is the node protocol's if it has a field that only this
//! protocol has, or messages that are strings:
//!
//! | In the body | Whose it is |
//! | --- | --- |
//! | `max_new_tokens`, `conversation_id` or `user_id`; a message that is a string | the node protocol's |
//! | `system` or `temperature` beside the messages, and none of Ollama's own fields | the node protocol's |
//! | anything else | Ollama's |
//!
//! Ollama's own fields are `stream`, `options`, `format`, `keep_alive`, `tools` and `think`. Stock clients of
//! the node protocol always send `max_new_tokens` and `temperature`; Ollama's clients send neither.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::KeepAlive;
use crate::{
    json::{BadRequest, mended},
    openai::{Edit, added, object_end, span, splice},
};

/// The facts about the request in a body that matter before it becomes a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Peek {
    /// Whether it belongs to the node protocol.
    pub is_node: bool,
    /// Whether the prompt of a generate goes to the model as it is: `raw`, or with a `suffix`.
    pub is_raw: bool,
    /// Whether it has no message, no prompt and no input.
    pub is_nothing: bool,
    /// How long the model is to stay in memory; the error of a value that cannot be read.
    pub keep_alive: Option<Result<KeepAlive, BadRequest>>,
}

/// The fields that count. Each of them may be absent or `null`.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Fields<'a> {
    messages: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    suffix: Option<&'a RawValue>,
    raw: Option<&'a RawValue>,
    keep_alive: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    format: Option<IgnoredAny>,
    tools: Option<IgnoredAny>,
    think: Option<IgnoredAny>,
    max_tokens: Option<IgnoredAny>,
    max_new_tokens: Option<IgnoredAny>,
    conversation_id: Option<IgnoredAny>,
    user_id: Option<IgnoredAny>,
    system: Option<IgnoredAny>,
    temperature: Option<IgnoredAny>,
}

impl Peek {
    /// Reads a body. `None` when it is no object, or a field that counts appears twice in it.
    pub fn read(body: &[u8]) -> Option<Self> {
        match serde_json::from_slice::<Fields<'_>>(body) {
            Ok(fields) => Some(fields.peek()),
            Err(_) => {
                let mended = mended(body)?;
                let fields: Fields<'_> = serde_json::from_str(&mended).ok()?;
                Some(fields.peek())
            }
        }
    }
}

impl Fields<'_> {
    fn peek(&self) -> Peek {
        let nothing = [self.messages, self.prompt, self.input, self.suffix];
        let keep_alive = self.keep_alive.and_then(|raw| KeepAlive::read(raw.get()).transpose());
        Peek {
            is_node: self.is_node(),
            is_raw: self.raw.is_some_and(|raw| raw.get() == "true")
                || self.suffix.is_some_and(|suffix| !is_empty(suffix)),
            is_nothing: nothing.into_iter().flatten().all(is_empty),
            keep_alive,
        }
    }

    fn is_node(&self) -> bool {
        let surely = self.max_new_tokens.is_some()
            || self.conversation_id.is_some()
            || self.user_id.is_some()
            || self.messages.is_some_and(has_strings);
        let perhaps = self.system.is_some() || self.temperature.is_some();
        surely || perhaps && !self.is_ollamas()
    }

    /// Whether it has one of Ollama's own fields.
    fn is_ollamas(&self) -> bool {
        let raws = [self.stream, self.options, self.keep_alive];
        let others = [&self.format, &self.tools, &self.think];
        raws.iter().any(Option::is_some) || others.iter().any(|field| field.is_some())
    }
}

/// Whether it is an empty text or list.
fn is_empty(raw: &RawValue) -> bool {
    let is_empty = |list: Vec<IgnoredAny>| list.is_empty();
    raw.get() == "\"\"" || serde_json::from_str(raw.get()).is_ok_and(is_empty)
}

/// Whether one of the messages is a string.
fn has_strings(messages: &RawValue) -> bool {
    let messages: Vec<&RawValue> = serde_json::from_str(messages.get()).unwrap_or_default();
    messages.iter().any(|message| message.get().starts_with('"'))
}

/// Adds the fields that routing reads at the top of a body: `stream`, which is true unless the body
/// says otherwise, and `max_tokens`, which is `num_predict` of its options. The rest keeps its
/// bytes.
pub fn completed(body: &Bytes) -> Bytes {
    let (Ok(text), Some(end)) = (str::from_utf8(body), object_end(body)) else {
        return body.clone();
    };
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(text) else {
        return match mended(body) {
            // The mended text is read at once, and needs no mending.
            Some(mended) if mended.as_bytes() != &body[..] => completed(&mended.into()),
            _ => body.clone(),
        };
    };
    let edits: Vec<Edit> = fields.lacking(text, end).collect();
    if edits.is_empty() { body.clone() } else { splice(body, edits) }
}

impl Fields<'_> {
    fn lacking(&self, text: &str, end: usize) -> impl Iterator<Item = Edit> {
        let stream = self.stream.is_none().then(|| match null_stream(text) {
            Some(span) => Edit { span, text: "true".to_owned() },
            None => added(end, [("stream", "true")]),
        });
        let most = self.most_tokens().filter(|_| self.max_tokens.is_none());
        let most = most.map(|most| added(end, [("max_tokens", most.to_string())]));
        stream.into_iter().chain(most)
    }

    /// `num_predict`, where it is a bound.
    fn most_tokens(&self) -> Option<u64> {
        let options: Options = serde_json::from_str(self.options?.get()).ok()?;
        // Fractions are cut off, as Ollama does; a conversion saturates.
        options.num_predict.map(|most| most as u64).filter(|most| *most > 0)
    }
}

#[derive(Deserialize)]
struct Options {
    num_predict: Option<f64>,
}

/// Where a `stream` that is `null` has its value.
fn null_stream(text: &str) -> Option<std::ops::Range<usize>> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Stream<'a> {
        stream: &'a RawValue,
    }
    serde_json::from_str::<Stream<'_>>(text).ok().map(|it| span(text, it.stream))
}

/// The model's name in a body, under `model`, or under `name` as older clients write it.
pub fn model_name(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Named<'a> {
        model: Option<Cow<'a, str>>,
        name: Option<Cow<'a, str>>,
    }
    let Named { model, name } = serde_json::from_slice(body).ok()?;
    let given = [model, name].into_iter().flatten().find(|name| !name.trim().is_empty());
    given.map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peek(body: &str) -> Peek {
        Peek::read(body.as_bytes()).unwrap()
    }

    #[test]
    fn the_node_protocols_bodies_are_told_from_ollamas() {
        let said = r#""messages":[{"role":"user","content":"hi"}]"#;
        for (fields, node) in [
            // What the stock page and the stock documentation send.
            (
                r#""temperature":0.5,"max_new_tokens":7,"conversation_id":"c","user_id":"u","system":"s""#,
                true,
            ),
            (r#""max_new_tokens":7"#, true),
            (r#""max_new_tokens":7,"stream":true"#, true),
            (r#""system":"Be brief.""#, true),
            (r#""temperature":0.5"#, true),
            (r#""temperature":0.5,"stream":false"#, false),
            (r#""system":"s","options":{}"#, false),
            (r#""x":1"#, false),
            (r#""stream":true"#, false),
            (r#""stream":null,"max_new_tokens":null"#, false),
            (r#""tools":[],"keep_alive":"5m","think":false,"format":"json""#, false),
        ] {
            let body = format!(r#"{{"model":"m",{said},{fields}}}"#);
            assert_eq!(peek(&body).is_node, node, "{body}");
        }
        assert!(peek(r#"{"messages":["a"],"stream":true}"#).is_node);
        assert!(peek(r#"{"messages":[{"role":"user","content":"a"},"b"]}"#).is_node);
        for odd in [r#"{"messages":7}"#, r#"{"messages":[7,null]}"#, "{}", r#"{"messages":"a"}"#] {
            assert!(!peek(odd).is_node, "{odd}");
        }
        for none in ["", "[]", "7", "{", "\u{1}"] {
            assert_eq!(Peek::read(none.as_bytes()), None, "{none}");
        }
    }

    #[test]
    fn what_asks_nothing_is_found() {
        for (body, nothing) in [
            (r#"{"model":"m"}"#, true),
            (r#"{"messages":[ ]}"#, true),
            (r#"{"prompt":"","suffix":""}"#, true),
            (r#"{"input":[]}"#, true),
            (r#"{"prompt":null}"#, true),
            (r#"{"prompt":"","suffix":"x"}"#, false),
            (r#"{"prompt":" "}"#, false),
            (r#"{"messages":[{}]}"#, false),
            (r#"{"messages":{}}"#, false),
        ] {
            assert_eq!(peek(body).is_nothing, nothing, "{body}");
        }
        let over = peek(r#"{"keep_alive":0}"#).keep_alive.unwrap().unwrap();
        assert!(over.is_over());
        assert!(peek(r#"{"keep_alive":{}}"#).keep_alive.unwrap().is_err());
    }

    #[test]
    fn a_prompt_as_it_is_is_found() {
        for (body, raw) in [
            (r#"{"prompt":"x","raw":true}"#, true),
            (r#"{"prompt":"x","suffix":"y"}"#, true),
            (r#"{"prompt":"x","suffix":"","raw":false}"#, false),
            (r#"{"prompt":"x","suffix":null}"#, false),
        ] {
            assert_eq!(peek(body).is_raw, raw, "{body}");
        }
    }

    #[test]
    fn what_routing_reads_is_put_at_the_top() {
        for (given, expected) in [
            (r#"{"model":"m"}"#, r#"{"model":"m","stream":true}"#),
            (r#"{"stream": null,"model":"m"}"#, r#"{"stream": true,"model":"m"}"#),
            (r#"{"stream":false}"#, r#"{"stream":false}"#),
            (
                r#"{"options":{"num_predict":7.9},"stream":true} "#,
                r#"{"options":{"num_predict":7.9},"stream":true,"max_tokens":7} "#,
            ),
            (
                r#"{"options":{"num_predict":-1},"stream":true}"#,
                r#"{"options":{"num_predict":-1},"stream":true}"#,
            ),
            (
                r#"{"max_tokens":3,"options":{"num_predict":9}}"#,
                r#"{"max_tokens":3,"options":{"num_predict":9},"stream":true}"#,
            ),
            ("[]", "[]"),
            ("{", "{"),
        ] {
            assert_eq!(completed(&Bytes::copy_from_slice(given.as_bytes())), expected);
        }
        let both = completed(&Bytes::from_static(br#"{"model":"m","options":{"num_predict":5}}"#));
        let read = crate::openai::peek(&both).unwrap();
        assert_eq!((read.stream, read.most_tokens), (true, 5));
    }

    #[test]
    fn a_name_is_read_from_both_fields() {
        assert_eq!(model_name(br#"{"model":"a","name":"b"}"#).as_deref(), Some("a"));
        assert_eq!(model_name(br#"{"model":"","name":"b"}"#).as_deref(), Some("b"));
        assert_eq!(model_name(br#"{"name":7}"#), None);
    }
}
