//! Chunks and whole answers of Chat Completions, as backends send them.
//!
//! Reading is forgiving where backends differ and nothing is lost by it: texts may be `null`,
//! missing, or lists of parts; counts may be `null` or have a fraction; arguments may be an object
//! instead of its text.

use std::borrow::Cow;

use protocol::json::lenient::{Count, Text, or_default};
use serde::{Deserialize, de::Deserializer};
use serde_json::value::RawValue;

/// A chunk of a stream (`chat.completion.chunk`), or a whole answer (`chat.completion`).
#[derive(Debug, Default, Deserialize)]
pub struct Completion<'a> {
    /// The model's output; a whole answer has the same with `message` for `delta`. Empty in the
    /// chunk that only has the usage.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub choices: Vec<Choice<'a>>,
    /// The usage, in the last chunk or the one after it, if at all.
    #[serde(default, deserialize_with = "usage_or_none")]
    pub usage: Option<Usage>,
    /// An error within the stream.
    #[serde(borrow, default)]
    pub error: Option<&'a RawValue>,
    /// The type of the object; some backends send `error` here and have no such field.
    #[serde(borrow, default)]
    pub object: Text<'a>,
    /// The error's message, if it has no field of its own and is at the top level.
    #[serde(borrow, default)]
    pub message: Text<'a>,
}

/// One of the answers that were asked for.
#[derive(Debug, Default, Deserialize)]
pub struct Choice<'a> {
    /// Which one.
    #[serde(default)]
    pub index: Count,
    /// The delta of a chunk.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub delta: Message<'a>,
    /// All of it, in a whole answer.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub message: Message<'a>,
    /// The reason of its end; empty before the end.
    #[serde(borrow, default)]
    pub finish_reason: Text<'a>,
    /// vLLM: the stop sequence that the model came to, or a token's number.
    #[serde(borrow, default)]
    pub stop_reason: Text<'a>,
    /// SGLang: the same.
    #[serde(borrow, default)]
    pub matched_stop: Text<'a>,
}

/// A message of the model, or a piece of it.
#[derive(Debug, Default, Deserialize)]
pub struct Message<'a> {
    /// Text.
    #[serde(borrow, default)]
    pub content: Text<'a>,
    /// Thoughts (llama.cpp, SGLang, DeepSeek, older vLLM).
    #[serde(borrow, default)]
    pub reasoning_content: Text<'a>,
    /// Thoughts (Ollama, newer vLLM, OpenRouter).
    #[serde(borrow, default)]
    pub reasoning: Text<'a>,
    /// Why it does not answer.
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    /// Calls of tools, or pieces of them.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub tool_calls: Vec<ToolCall<'a>>,
}

impl Message<'_> {
    /// The thoughts, under either name. A backend that sends both sends the same twice.
    pub fn thoughts(&self) -> &str {
        if self.reasoning_content.is_empty() { &self.reasoning } else { &self.reasoning_content }
    }
}

/// A call of a tool, or a piece of one.
#[derive(Debug, Default, Deserialize)]
pub struct ToolCall<'a> {
    /// Which call of the answer; some backends leave it out.
    #[serde(default)]
    pub index: Count,
    /// The call's id, at least in its first piece.
    #[serde(borrow, default)]
    pub id: Text<'a>,
    /// The function of the call.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub function: Function<'a>,
}

/// The function and its arguments.
#[derive(Debug, Default, Deserialize)]
pub struct Function<'a> {
    /// The tool's name, at least in the first piece.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

impl<'a> Function<'a> {
    /// A call, or a piece of one, as another shape than Chat Completions has it.
    pub fn new(name: Text<'a>, arguments: Option<&'a RawValue>) -> Self {
        Self { name, arguments }
    }

    /// The arguments as text, or a piece of it.
    pub fn arguments(&self) -> Cow<'a, str> {
        let Some(raw) = self.arguments else { return Cow::Borrowed("") };
        if !raw.get().starts_with('"') {
            return Cow::Borrowed(raw.get());
        }
        serde_json::from_str::<Text<'a>>(raw.get()).map(|text| text.0).unwrap_or_default()
    }
}

/// The usage of an answer, in tokens. `None` if it is not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Of the prompt, those from a cache included.
    #[serde(default)]
    pub prompt_tokens: Count,
    /// Of the answer, thoughts included.
    #[serde(default)]
    pub completion_tokens: Count,
    /// More about the prompt.
    #[serde(default, deserialize_with = "or_default")]
    pub prompt_tokens_details: PromptDetails,
    /// More about the answer.
    #[serde(default, deserialize_with = "or_default")]
    pub completion_tokens_details: CompletionDetails,
}

impl Usage {
    /// Tokens of the prompt, and how many of them came from a cache: never more than all.
    pub fn prompt(&self) -> (u64, u64) {
        let all = self.prompt_tokens.0.unwrap_or(0);
        (all, self.prompt_tokens_details.cached_tokens.0.unwrap_or(0).min(all))
    }

    /// Tokens of the answer.
    pub fn completion(&self) -> u64 {
        self.completion_tokens.0.unwrap_or(0)
    }
}

/// More about a prompt's tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct PromptDetails {
    /// Tokens that came from a cache.
    #[serde(default)]
    pub cached_tokens: Count,
}

/// More about an answer's tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct CompletionDetails {
    /// Those of thoughts.
    #[serde(default)]
    pub reasoning_tokens: Count,
}

/// An invalid usage counts as none: it is no reason to lose an answer.
fn usage_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usage>, D::Error> {
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Completion<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_chunk_of_each_backend_is_read() {
        let llama = r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}],"created":1,"id":"chatcmpl-1","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}"#;
        assert_eq!(&*read(llama).choices[0].delta.content, "Hi");
        let ollama = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null}]}"#;
        assert_eq!(read(ollama).choices[0].delta.thoughts(), "hm");
        let vllm = r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"logprobs":null,"finish_reason":"stop","stop_reason":"END","token_ids":null}],"usage":null}"#;
        let vllm = read(vllm);
        assert_eq!(&*vllm.choices[0].stop_reason, "END");
        assert_eq!(&*vllm.choices[0].finish_reason, "stop");
        assert_eq!(vllm.usage, None);
    }

    #[test]
    fn plain_text_is_borrowed() {
        let text = r#"{"choices":[{"delta":{"content":"plain"}}]}"#;
        assert!(matches!(read(text).choices[0].delta.content.0, Cow::Borrowed("plain")));
    }

    #[test]
    fn odd_values_are_neither_text_nor_count() {
        for odd in ["null", "7", "-7", "0.5", "true", "{\"a\":1}", "[]", "[{\"type\":\"x\"},3]"] {
            let text = format!(r#"{{"choices":[{{"delta":{{"content":{odd}}}}}],"usage":null}}"#);
            assert!(read(&text).choices[0].delta.content.is_empty(), "{odd}");
        }
        for odd in ["null", "-7", "true", "{\"a\":1}", "[1]", "\"5\""] {
            let text = format!(r#"{{"usage":{{"prompt_tokens":{odd}}}}}"#);
            assert_eq!(read(&text).usage.unwrap().prompt_tokens, Count(None), "{odd}");
        }
        assert_eq!(read(r#"{"choices":[],"usage":"n/a"}"#).usage, None);
        assert_eq!(
            read(r#"{"choices":null,"usage":{"prompt_tokens":5.0}}"#).usage.unwrap().prompt(),
            (5, 0)
        );
    }

    #[test]
    fn parts_of_text_are_joined() {
        let text = r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},"b"]}}]}"#;
        assert_eq!(&*read(text).choices[0].message.content, "ab");
    }

    #[test]
    fn arguments_are_text_or_an_object() {
        let call = |arguments: &str| {
            let text = format!(r#"{{"name":"f","arguments":{arguments}}}"#);
            let function: Function<'_> = serde_json::from_str(&text).unwrap();
            function.arguments().into_owned()
        };
        assert_eq!(call(r#""{\"a\":1}""#), r#"{"a":1}"#);
        assert_eq!(call(r#"{"a": 1}"#), r#"{"a": 1}"#);
        assert_eq!(call("null"), "");
    }

    #[test]
    fn cached_tokens_are_some_of_the_prompts() {
        let text = r#"{"usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":99},"completion_tokens_details":null}}"#;
        let usage = read(text).usage.unwrap();
        assert_eq!((usage.prompt(), usage.completion()), ((10, 10), 2));
    }
}
