//! From a Responses client to a Chat Completions provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `input`, `instructions` | messages; the item types are listed with the code that reads them |
//! | `tools`: functions, custom tools, namespaces | functions; a custom tool takes its text in the parameter `input`, and its grammar is put into words |
//! | `tools` that OpenAI runs itself (`web_search`, `code_interpreter`, …) | left out: the model may do without; refused where `tool_choice` asks for one |
//! | `file_search`, `mcp` | refused: they provide the user's own data, which the model would invent without them |
//! | `tools` with item types of their own (`local_shell`, `computer`, …) | refused |
//! | `tool_choice`, `allowed_tools` among it, `parallel_tool_calls` | carried, unless no tool is left |
//! | `max_output_tokens`, `temperature`, `top_p`, `user`, `stream` | carried; streams are asked for their usage |
//! | `text.format` | as `response_format` |
//! | `reasoning.effort` | as `reasoning_effort`, in the words low, medium, high and none |
//! | `previous_response_id`, `conversation`, `background`, `prompt` | refused: nothing is stored here |
//! | `moderation` | refused |
//! | `store`, `include`, `metadata`, `truncation`, `service_tier`, `text.verbosity`, `reasoning.summary`, `top_logprobs`, `max_tool_calls`, `prompt_cache_key`, `stream_options` and fields not known | dropped: they change no answer here. What the answer repeats of the request, it repeats; `store` is always false |
//!
//! In the answer, thoughts are a `reasoning` item with `reasoning_text`, never a summary: they are
//! the model's own text. Items come one after the other. The input of a custom tool is decoded when
//! its call is complete and comes as one delta. An answer that breaks off ends with
//! `response.failed`.

mod answer;
mod echo;
mod input;
mod item;
mod request;
mod request_item;
mod tools;

pub use request::request;

use self::echo::Echo;
use crate::{Context, answer::Answer, chat::FromChat, refusal::ClientNames};

/// The client's names of fields, for refusals by a second translation.
pub(crate) const NAMES: ClientNames = ClientNames {
    fields: &[
        ("max_tokens", "max_output_tokens"),
        ("response_format", "text.format"),
        ("reasoning_effort", "reasoning.effort"),
    ],
    said: "input",
    origins: request::origins,
};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    FromChat::new(answer::Response::new(context, request))
}

/// The `response` object for a request that still waits for its answer. `request` is the client's own body.
pub fn waiting(context: &Context, request: &[u8]) -> String {
    let begun = Echo::of(context, request).fields;
    format!(
        r#"{begun},"status":"queued","error":null,"incomplete_details":null,"output":[],"usage":null}}"#
    )
}

#[cfg(test)]
mod tests;
