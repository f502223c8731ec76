//! The thoughts of an assistant's earlier message in Chat Completions, in every form in which clients
//! send them back.
//!
//! | Form | Who sends it |
//! | --- | --- |
//! | `reasoning_content`, a text | clients of DeepSeek, vLLM, llama.cpp, SGLang |
//! | `reasoning`, a text | clients of Ollama, OpenRouter, newer vLLM |
//! | `reasoning_details`, a list | clients of OpenRouter, with signatures and encrypted thoughts |
//! | `thinking_blocks`, a list | clients of LiteLLM, with Anthropic's signatures |
//! | parts of `content` of type `thinking` | clients of Mistral |
//!
//! A client may send the same thoughts in several forms. Only the richest one counts: the lists, then
//! the parts, then the texts.

use std::borrow::Cow;

use protocol::json::{BadRequest, fields, lenient};
use serde::Deserialize;
use serde_json::value::RawValue;

/// One thought.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Thought<'a> {
    /// Its text; empty if the thought is only encrypted.
    pub(crate) text: Cow<'a, str>,
    /// Anthropic's signature of the text.
    pub(crate) signature: Option<Cow<'a, str>>,
    /// The thought in a form that only its provider can read.
    pub(crate) sealed: Option<SealedThought<'a>>,
}

/// An encrypted thought, by the provider that can read it.
#[derive(Debug, PartialEq)]
pub(crate) enum SealedThought<'a> {
    /// The `data` of a `redacted_thinking` block.
    Anthropic(Cow<'a, str>),
    /// The `encrypted_content` of a `reasoning` item.
    OpenAi { data: Cow<'a, str> },
}

/// The fields of a message that may hold thoughts.
#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
pub(crate) struct Given<'a> {
    #[serde(default)]
    reasoning_content: lenient::Text<'a>,
    #[serde(default)]
    reasoning: lenient::Text<'a>,
    reasoning_details: Option<&'a RawValue>,
    thinking_blocks: Option<&'a RawValue>,
}

/// One entry of `reasoning_details` or `thinking_blocks`, or a part of `content`.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Entry<'a> {
    #[serde(rename = "type", default)]
    kind: lenient::Text<'a>,
    #[serde(default)]
    text: lenient::Text<'a>,
    #[serde(default)]
    thinking: lenient::Text<'a>,
    #[serde(default)]
    summary: lenient::Text<'a>,
    #[serde(default)]
    signature: lenient::Text<'a>,
    #[serde(default)]
    data: lenient::Text<'a>,
    #[serde(default)]
    format: lenient::Text<'a>,
}

/// Whether a part of `content` with this type is a thought.
pub(crate) fn is_thought(kind: &str) -> bool {
    matches!(kind, "thinking" | "redacted_thinking" | "reasoning")
}

impl<'a> Given<'a> {
    /// The thoughts, in their order. `content` is the message's content, and `path` its path in the
    /// request.
    pub(crate) fn read(
        self,
        content: Option<&'a RawValue>,
        path: &str,
    ) -> Result<Vec<Thought<'a>>, BadRequest> {
        let lists = [
            (self.thinking_blocks, "thinking_blocks"),
            (self.reasoning_details, "reasoning_details"),
            (content, "content"),
        ];
        for (list, name) in lists {
            let Some(list) = list.filter(|raw| raw.get().starts_with('[')) else { continue };
            let thoughts = thoughts(list, &format!("{path}.{name}"))?;
            if !thoughts.is_empty() {
                return Ok(thoughts);
            }
        }
        let texts = [self.reasoning_content.0, self.reasoning.0];
        let said = texts.into_iter().find(|text| !text.is_empty());
        Ok(said.map(|text| Thought { text, ..Thought::default() }).into_iter().collect())
    }
}

fn thoughts<'a>(list: &'a RawValue, path: &str) -> Result<Vec<Thought<'a>>, BadRequest> {
    let raws: Vec<&'a RawValue> = fields::value(list, path)?;
    let entries = raws.iter().enumerate().filter(|(_, raw)| raw.get().starts_with('{'));
    let mut thoughts = Vec::new();
    for (at, raw) in entries {
        let entry: Entry<'a> = fields::value(raw, format!("{path}[{at}]"))?;
        thoughts.extend(entry.thought());
    }
    Ok(thoughts)
}

impl<'a> Entry<'a> {
    fn thought(self) -> Option<Thought<'a>> {
        let kind = self.kind.0;
        let is_known = is_thought(&kind) || kind.starts_with("reasoning.");
        if !is_known {
            return None;
        }
        // A block of Anthropic's form, or an entry that names that form.
        let of_anthropic = kind.ends_with("thinking") || self.format.0.starts_with("anthropic");
        let data = Some(self.data.0).filter(|data| !data.is_empty());
        let sealed = match data {
            Some(data) if of_anthropic => Some(SealedThought::Anthropic(data)),
            Some(data) if self.format.0.starts_with("openai-responses") => {
                Some(SealedThought::OpenAi { data })
            }
            _ => None,
        };
        let texts = [self.thinking.0, self.text.0, self.summary.0];
        let text = texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
        let signature = Some(self.signature.0).filter(|it| of_anthropic && !it.is_empty());
        let thought = Thought { text, signature, sealed };
        (thought != Thought::default()).then_some(thought)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(message: &Value) -> Vec<(String, Option<String>, bool)> {
        let text = message.to_string();
        #[derive(Deserialize)]
        struct Content<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        let given: Given<'_> = serde_json::from_str(&text).unwrap();
        let content: Content<'_> = serde_json::from_str(&text).unwrap();
        let thoughts = given.read(content.content, "m").unwrap();
        let shown = |it: Thought<'_>| {
            (it.text.into_owned(), it.signature.map(Cow::into_owned), it.sealed.is_some())
        };
        thoughts.into_iter().map(shown).collect()
    }

    #[test]
    fn every_form_is_read_and_none_twice() {
        let hm = |signature: Option<&str>, sealed| {
            vec![("Hm.".to_owned(), signature.map(str::to_owned), sealed)]
        };
        let claude = "anthropic-claude-v1";
        for (message, expected) in [
            (json!({"reasoning_content": "Hm."}), hm(None, false)),
            (json!({"reasoning": "Hm.", "reasoning_content": "Hm."}), hm(None, false)),
            (json!({"reasoning_content": [{"type": "text", "text": "Hm."}]}), hm(None, false)),
            (
                json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "x"}]}),
                hm(None, false),
            ),
            (
                json!({"thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}], "reasoning_content": "Hm."}),
                hm(Some("s"), false),
            ),
            (
                json!({"reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "s", "format": claude, "index": 0}]}),
                hm(Some("s"), false),
            ),
            (
                json!({"reasoning_details": [{"type": "reasoning.text", "text": "Hm.", "signature": "s", "format": "google-gemini-v1"}]}),
                hm(None, false),
            ),
            (
                json!({"reasoning_details": [{"type": "reasoning.summary", "summary": "Hm."}]}),
                hm(None, false),
            ),
            (
                json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "format": claude}]}),
                vec![(String::new(), None, true)],
            ),
            (
                json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "d", "format": "unknown"}], "reasoning": "Hm."}),
                hm(None, false),
            ),
            (
                json!({"reasoning_content": null, "reasoning": {"a": 1}, "reasoning_details": "x"}),
                vec![],
            ),
            (
                json!({"content": "x", "reasoning_details": [null, 7, {"type": "text", "text": "x"}]}),
                vec![],
            ),
        ] {
            assert_eq!(read(&message), expected, "{message}");
        }
    }
}
