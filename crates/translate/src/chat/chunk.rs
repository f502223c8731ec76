//! Chunks and whole answers of Chat Completions, as backends send them.
//!
//! Reading is lenient where backends differ and nothing is lost by that. Any field may be `null` or
//! missing, and lists may contain `null`. Texts may be lists of parts. Counts may have a fraction.
//! Arguments may be an object instead of its text. Thoughts have many names.

use protocol::json::lenient::{Count, List, Text, TextOrJson, or_default};
use serde::{Deserialize, de::Deserializer};
use serde_json::value::RawValue;

use super::content::{Content, Thoughts};

/// A chunk of a stream (`chat.completion.chunk`), or a whole answer (`chat.completion`).
#[derive(Debug, Default, Deserialize)]
pub struct Completion<'a> {
    /// The model's output: in `delta` of a chunk, in `message` of a whole answer. Empty in the
    /// chunk that has only the usage.
    #[serde(borrow, default)]
    pub choices: List<Choice<'a>>,
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
    /// The number of this answer, from 0.
    #[serde(default)]
    pub index: Count,
    /// The delta of a chunk.
    #[serde(borrow, default)]
    pub delta: Option<Message<'a>>,
    /// The whole message, in a whole answer. Some backends also put the message so far into each
    /// chunk, beside the delta.
    #[serde(borrow, default)]
    pub message: Option<Message<'a>>,
    /// Why it ended; empty before its end.
    #[serde(borrow, default)]
    pub finish_reason: Text<'a>,
    /// The stop sequence that the model reached, or a token's number (vLLM).
    #[serde(borrow, default)]
    pub stop_reason: Text<'a>,
    /// The same by another name (SGLang).
    #[serde(borrow, default)]
    pub matched_stop: Text<'a>,
}

/// A message of the model, or a piece of it.
#[derive(Debug, Default, Deserialize)]
pub struct Message<'a> {
    /// The text; and thoughts, if the content is a list that has them as parts (Mistral).
    #[serde(borrow, default)]
    pub content: Content<'a>,
    /// Thoughts (llama.cpp, SGLang, DeepSeek, older vLLM).
    #[serde(borrow, default)]
    pub reasoning_content: Text<'a>,
    /// Thoughts (Ollama, newer vLLM, OpenRouter).
    #[serde(borrow, default)]
    pub reasoning: Text<'a>,
    /// Thoughts (GitHub Copilot).
    #[serde(borrow, default)]
    pub reasoning_text: Text<'a>,
    /// Thoughts as a list of parts (OpenRouter).
    #[serde(borrow, default)]
    pub reasoning_details: Thoughts<'a>,
    /// Thoughts as blocks of Anthropic (LiteLLM).
    #[serde(borrow, default)]
    pub thinking_blocks: Thoughts<'a>,
    /// Why the model refuses to answer.
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    /// Calls of tools, or pieces of them.
    #[serde(borrow, default)]
    pub tool_calls: List<ToolCall<'a>>,
}

impl Message<'_> {
    /// The thoughts, under the first name that has any. A backend that uses several names sends the
    /// same thoughts under each.
    pub fn thoughts(&self) -> &str {
        let names = [
            &self.reasoning_content.0,
            &self.reasoning.0,
            &self.reasoning_text.0,
            &self.content.thoughts,
            &self.reasoning_details.0,
            &self.thinking_blocks.0,
        ];
        names.into_iter().find(|text| !text.is_empty()).map_or("", |text| text)
    }
}

/// A call of a tool, or a piece of one.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct ToolCall<'a> {
    /// The number of the call in the answer; some backends leave it out.
    #[serde(default)]
    pub index: Count,
    /// The call's id, at least in its first piece.
    #[serde(borrow, default)]
    pub id: Text<'a>,
    /// The function of the call.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub function: Function<'a>,
    /// An object that the provider expects back with the call in the next request (Google).
    #[serde(borrow, default)]
    pub extra_content: Option<&'a RawValue>,
}

/// The function and its arguments.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Function<'a> {
    /// The tool's name, at least in the first piece.
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// The arguments as text, or a piece of it; `None` when there are none.
    #[serde(borrow, default)]
    pub arguments: TextOrJson<'a>,
}

impl Function<'_> {
    /// The arguments as text, or a piece of it.
    pub fn arguments(&self) -> &str {
        self.arguments.0.as_deref().unwrap_or_default()
    }
}

/// The usage of an answer, in tokens. `None` if it is not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Of the prompt, including those from a cache.
    #[serde(default)]
    pub prompt_tokens: Count,
    /// Of the answer, including thoughts.
    #[serde(default)]
    pub completion_tokens: Count,
    /// More about the prompt.
    #[serde(default, deserialize_with = "or_default")]
    pub prompt_tokens_details: PromptDetails,
    /// More about the answer.
    #[serde(default, deserialize_with = "or_default")]
    pub completion_tokens_details: CompletionDetails,
    /// Tokens of the prompt that came from a cache, by DeepSeek's name.
    #[serde(default)]
    pub prompt_cache_hit_tokens: Count,
}

/// The tokens of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PromptTokens {
    /// All of them.
    pub all: u64,
    /// Those that came from a cache.
    pub cached: u64,
    /// Those that were written to a cache.
    pub written: u64,
}

impl PromptTokens {
    /// Those that were neither read from a cache nor written to one.
    pub fn plain(&self) -> u64 {
        self.all - self.cached - self.written
    }
}

impl Usage {
    /// The tokens of the prompt. Cached and written tokens together are capped at all of them.
    pub fn prompt(&self) -> PromptTokens {
        let details = &self.prompt_tokens_details;
        let all = self.prompt_tokens.0.unwrap_or(0);
        let cached =
            details.cached_tokens.0.or(self.prompt_cache_hit_tokens.0).unwrap_or(0).min(all);
        let written = details.cache_write_tokens.0.unwrap_or(0).min(all - cached);
        PromptTokens { all, cached, written }
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
    /// Tokens that were written to a cache. The second name is LiteLLM's.
    #[serde(default, alias = "cache_creation_tokens")]
    pub cache_write_tokens: Count,
}

/// More about an answer's tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct CompletionDetails {
    /// Those of thoughts.
    #[serde(default)]
    pub reasoning_tokens: Count,
}

/// An invalid usage counts as missing, so that the answer is not lost because of it.
fn usage_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usage>, D::Error> {
    let raw = Option::<&RawValue>::deserialize(deserializer)?;
    Ok(raw.and_then(|raw| serde_json::from_str(raw.get()).ok()))
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn read(text: &str) -> Completion<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_chunk_of_each_backend_is_read() {
        let llama = r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Hi"}}],"created":1,"id":"chatcmpl-1","model":"m","system_fingerprint":"b1","object":"chat.completion.chunk"}"#;
        assert_eq!(&*read(llama).choices.0[0].delta.as_ref().unwrap().content.text, "Hi");
        let ollama = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"hm"},"finish_reason":null}]}"#;
        assert_eq!(read(ollama).choices.0[0].delta.as_ref().unwrap().thoughts(), "hm");
        let vllm = r#"{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"logprobs":null,"finish_reason":"stop","stop_reason":"END","token_ids":null}],"usage":null}"#;
        let vllm = read(vllm);
        assert_eq!(&*vllm.choices.0[0].stop_reason, "END");
        assert_eq!(&*vllm.choices.0[0].finish_reason, "stop");
        assert_eq!(vllm.usage, None);
    }

    #[test]
    fn plain_text_is_borrowed() {
        let text = r#"{"choices":[{"delta":{"content":"plain"}}]}"#;
        assert!(matches!(
            read(text).choices.0[0].delta.as_ref().unwrap().content.text,
            Cow::Borrowed("plain")
        ));
    }

    #[test]
    fn odd_values_are_neither_text_nor_count() {
        for odd in ["null", "7", "-7", "0.5", "true", "{\"a\":1}", "[]", "[{\"type\":\"x\"},3]"] {
            let text = format!(r#"{{"choices":[{{"delta":{{"content":{odd}}}}}],"usage":null}}"#);
            assert!(
                read(&text).choices.0[0].delta.as_ref().unwrap().content.text.is_empty(),
                "{odd}"
            );
        }
        for odd in ["null", "-7", "true", "{\"a\":1}", "[1]", "\"5\""] {
            let text = format!(r#"{{"usage":{{"prompt_tokens":{odd}}}}}"#);
            assert_eq!(read(&text).usage.unwrap().prompt_tokens, Count(None), "{odd}");
        }
        assert_eq!(read(r#"{"choices":[],"usage":"n/a"}"#).usage, None);
        assert_eq!(
            read(r#"{"choices":null,"usage":{"prompt_tokens":5.0}}"#).usage.unwrap().prompt(),
            PromptTokens { all: 5, cached: 0, written: 0 }
        );
    }

    #[test]
    fn parts_of_text_are_joined() {
        let text = r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},"b"]}}]}"#;
        assert_eq!(&*read(text).choices.0[0].message.as_ref().unwrap().content.text, "ab");
    }

    #[test]
    fn arguments_are_text_or_an_object() {
        let call = |arguments: &str| {
            let text = format!(r#"{{"name":"f","arguments":{arguments}}}"#);
            let function: Function<'_> = serde_json::from_str(&text).unwrap();
            function.arguments().to_owned()
        };
        assert_eq!(call(r#""{\"a\":1}""#), r#"{"a":1}"#);
        assert_eq!(call(r#"{"a": 1}"#), r#"{"a": 1}"#);
        assert_eq!(call("null"), "");
    }

    #[test]
    fn thoughts_have_many_names_and_are_told_once() {
        for fields in [
            r#""reasoning_content":"hm""#,
            r#""reasoning_content":null,"reasoning":"hm""#,
            r#""reasoning_text":"hm""#,
            r#""reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]"#,
            r#""reasoning_details":[{"type":"reasoning.text","text":"h"},null,{"text":"m"}]"#,
            r#""thinking_blocks":[{"type":"thinking","thinking":"hm","signature":"x"}]"#,
            r#""content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]"#,
        ] {
            let text = format!(r#"{{"choices":[{{"delta":{{{fields}}}}}]}}"#);
            assert_eq!(
                read(&text).choices.0[0].delta.as_ref().unwrap().thoughts(),
                "hm",
                "{fields}"
            );
        }
    }

    #[test]
    fn null_may_be_anywhere() {
        let nulls = r#"{"id":null,"object":null,"choices":[null,{"index":null,"delta":{"role":null,"content":null,"tool_calls":[null,{"index":null,"id":null,"function":null}]},"finish_reason":null}],"usage":null,"error":null}"#;
        assert_eq!(read(nulls).choices.0.len(), 1);
        let of_usage = r#"{"choices":null,"usage":{"prompt_tokens":null,"prompt_tokens_details":{"cached_tokens":null},"completion_tokens_details":null}}"#;
        assert_eq!(read(of_usage).usage, Some(Usage::default()));
        assert!(read("{}").choices.0.is_empty() && read(r#"{"choices":{}}"#).choices.0.is_empty());
    }

    #[test]
    fn tokens_of_a_cache_are_some_of_the_prompts() {
        let prompt = |details: &str| {
            let text =
                format!(r#"{{"usage":{{"prompt_tokens":10,"completion_tokens":2,{details}}}}}"#);
            let PromptTokens { all, cached, written } = read(&text).usage.unwrap().prompt();
            (all, cached, written)
        };
        assert_eq!(
            prompt(r#""prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":4}"#),
            (10, 3, 4)
        );
        assert_eq!(
            prompt(r#""prompt_tokens_details":{"cached_tokens":8,"cache_creation_tokens":4}"#),
            (10, 8, 2)
        );
        assert_eq!(prompt(r#""prompt_tokens_details":{"cached_tokens":99}"#), (10, 10, 0));
        assert_eq!(
            prompt(r#""prompt_cache_hit_tokens":6,"prompt_tokens_details":null"#),
            (10, 6, 0)
        );
    }
}
