//! From a Chat Completions client to a Responses provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | messages: text, pictures, files, calls and their results | items of `input`, in their order and with their roles, results directly after their calls, see `turns` |
//! | thoughts of earlier turns | `reasoning` items with a summary, and with what OpenAI's servers encrypted (`reasoning_details`) |
//! | `tools`, `tool_choice`, `parallel_tool_calls` | carried; tools other than functions are refused |
//! | `max_completion_tokens`, else `max_tokens` | as `max_output_tokens` |
//! | `temperature`, `top_p`, `user`, `metadata`, `stream` | carried |
//! | `response_format`, `verbosity` | as `text` |
//! | `reasoning_effort` | as `reasoning.effort` |
//! | `stop`, `n` over 1, `logprobs`, `top_logprobs`, `logit_bias`, `functions`, `function_call`, `audio`, `modalities` other than text, `web_search_options` | refused by name |
//! | `seed`, `frequency_penalty`, `presence_penalty`, `top_k`, `prediction`, `service_tier`, names of participants, and fields not known | dropped |
//!
//! `store` is always false: a client of Chat Completions cannot use stored responses. In the
//! answer, thoughts and their summaries are `reasoning_content`. Items of tools that the provider
//! runs itself are ignored.

mod answer;
mod event;
mod input;
mod request;

use crate::{Context, answer::Answer, chat::chat_answer};

pub use request::request;

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    chat_answer::<answer::Reading>(context, request)
}

#[cfg(test)]
mod tests;
