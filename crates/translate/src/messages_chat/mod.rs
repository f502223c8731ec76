//! From a Messages client to a Chat Completions provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `system`, text, pictures, tools, calls and their results | carried |
//! | a `system` message among the others | with what the user says before it, marked as `<system-reminder>`: many templates take a system message at the beginning only |
//! | `max_tokens`, `temperature`, `top_p`, `stop_sequences`, `stream`, `metadata.user_id` | carried; streams are asked for their usage |
//! | `top_k` | carried: no field of OpenAI's, but local servers know it |
//! | `thinking`, `output_config.effort` | dropped: local models think as they are made to, and Ollama refuses the request of one that does not |
//! | `output_format`, `output_config.format` | as `response_format`, a JSON schema |
//! | a system block of Claude Code for Anthropic's billing | dropped: it changes with each request, and prompt caches would not hold |
//! | documents of text, search results | as text; any other document is refused |
//! | thoughts of earlier turns | as `reasoning_content`, without their signatures, which are Anthropic's own; encrypted ones are lost |
//! | traces of tools that Anthropic ran (`server_tool_use`, `web_search_tool_result`, `mcp_tool_use`, …) | left out: the assistant's text gives their results |
//! | results of tools | directly after their calls, see `order` |
//! | a `compaction` | its text |
//! | `cache_control`, `service_tier`, `context_management`, `container`, `inference_geo`, `speed` and fields not known | dropped: they change no answer here |
//! | tools that Anthropic runs or defines itself, as `web_search_…` | refused by name: without it the model would make the results up; a search for tools is dropped, as every tool is shown anyway |
//! | `mcp_servers` | refused unless empty |
//!
//! A tool's result with pictures becomes a `tool` message with the text, followed by a `user`
//! message with the pictures, which is where Chat Completions allows them. A failed tool's result
//! begins with `Error: `, because there is no field for it.
//!
//! In the answer, thoughts are a `thinking` block without a signature. A call whose arguments are
//! not a JSON object gets an empty object as its `input`; in a stream the text is passed unchanged.

mod blocks;
mod conversation;
mod request;
mod stream;
mod tools;
mod whole;

use serde::{Deserialize, Serialize};

use crate::{
    Context,
    answer::Answer,
    chat::{Finish, FromChat, Outcome, Usage},
    refusal::ClientNames,
};

pub use request::request;

/// The client's names of fields, for refusals by a second translation.
pub(crate) const NAMES: ClientNames = ClientNames {
    fields: &[
        ("stop", "stop_sequences"),
        ("user", "metadata.user_id"),
        ("response_format", "output_config.format"),
        ("parallel_tool_calls", "tool_choice.disable_parallel_tool_use"),
    ],
    said: "messages",
    origins: request::origins,
};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    let stops = Stops::of(request);
    let answer: Box<dyn Answer> = if context.streaming {
        Box::new(FromChat::new(stream::Stream::new(context, stops)))
    } else {
        Box::new(FromChat::new(whole::Whole::new(context, stops)))
    };
    answer
}

/// The stop sequences that a client asked for.
#[derive(Debug, Default, Deserialize)]
struct Stops {
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
}

impl Stops {
    fn of(request: &[u8]) -> Self {
        serde_json::from_slice(request).unwrap_or_default()
    }

    /// `stop_reason` and `stop_sequence`. The stop sequence that a backend reports may also be a
    /// token of its model, which the client does not know.
    fn reason<'a>(&self, outcome: &'a Outcome) -> (&'static str, Option<&'a str>) {
        let wanted = self.stop_sequences.as_deref().unwrap_or_default();
        let stop = outcome.stop_sequence.as_ref().filter(|stop| wanted.contains(stop));
        match (outcome.finish, stop) {
            (Finish::Stop, Some(stop)) => ("stop_sequence", Some(stop)),
            (Finish::Stop, None) => ("end_turn", None),
            (Finish::Length, _) => ("max_tokens", None),
            (Finish::ToolCalls, _) => ("tool_use", None),
            (Finish::ContentFilter, _) => ("refusal", None),
        }
    }
}

/// `usage`. In Messages, `input_tokens` excludes tokens that were read from a cache or written to one.
/// Missing counts are 0.
#[derive(Debug, Serialize)]
struct MessageUsage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl MessageUsage {
    fn of(usage: &Usage) -> Self {
        let prompt = usage.prompt();
        Self {
            input_tokens: prompt.plain(),
            cache_creation_input_tokens: prompt.written,
            cache_read_input_tokens: prompt.cached,
            output_tokens: usage.completion(),
        }
    }
}

fn message_id(context: &Context) -> String {
    format!("msg_{}", context.id)
}

/// The provider's id of a call, or else one made from the answer's id.
fn call_id(context_id: &str, id: &str, number: usize) -> String {
    if id.is_empty() { format!("toolu_{context_id}_{number}") } else { id.to_owned() }
}

/// A job's id in the form of errors and headers.
fn request_id(context: &Context) -> String {
    format!("r-{}", context.id)
}

#[cfg(test)]
mod tests;
