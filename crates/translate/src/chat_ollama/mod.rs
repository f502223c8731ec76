//! From a Chat Completions client to an Ollama's own API, `/api/chat`. Only in that API can a request set the
//! length of the model's context.
//!
//! | Of the request | What becomes of it |
//! | --- | --- |
//! | `model`, `stream`, `messages` of all roles, text, calls and their results | carried; `developer` becomes `system` |
//! | pictures | carried as base64; the address of a picture is refused, as Ollama fetches none |
//! | thoughts of earlier turns | as `thinking` |
//! | `tools` | carried; with `tool_choice` `none` left out, and with a function named by it that one alone |
//! | `tool_choice` `required`, `parallel_tool_calls` | dropped: Ollama has no such choice |
//! | `response_format` | as `format`: `json`, or the schema |
//! | `max_completion_tokens`, else `max_tokens` | as `options.num_predict` |
//! | `temperature`, `top_p`, `top_k`, `min_p`, `seed`, `stop`, `frequency_penalty`, `presence_penalty` | as `options` of these names |
//! | `reasoning_effort` | as `think`: `none` is `false`; `low`, `medium` and `high` as they are, `minimal` as `low`, `xhigh` as `high` |
//! | `keep_alive` | carried: no field of OpenAI's, but Ollama's clients send it |
//! | files, sound, `n` over 1, `logprobs`, `logit_bias`, `functions`, `audio`, `modalities` other than text, `web_search_options` | refused by name |
//! | everything else (`user`, `metadata`, `verbosity`, …) | dropped |
//!
//! In the answer `thinking` is `reasoning_content`, arguments are text, and a call without an id gets one. An
//! answer's end without `done` means that it was cut off.

mod message;
mod reader;
mod request;

pub use request::request;

use crate::{Context, answer::Answer, chat::chat_answer};

/// The path of Ollama's own chat API.
pub const PATH: &str = "/api/chat";

/// Reads Ollama's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    chat_answer::<reader::Reading>(context, request)
}

#[cfg(test)]
mod tests;
