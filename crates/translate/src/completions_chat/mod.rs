//! From a legacy Completions client to a Chat Completions provider.
//!
//! The prompt becomes one message of the user. So the model answers it instead of continuing it:
//! the provider offers nothing better.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `prompt`: a string, or a list of one | the message |
//! | `prompt`: several strings, or tokens | refused |
//! | `max_tokens`, `temperature`, `top_p`, `top_k`, `stop`, `seed`, penalties, `logit_bias`, `user`, `stream` | carried; without `max_tokens` the provider's own limit holds, not the 16 tokens of OpenAI's |
//! | `suffix`, `echo`, `logprobs`, `best_of` and `n` over 1 | refused |
//! | fields not known | dropped |
//!
//! Thoughts have no place in the answer and are left out.

mod answer;
mod request;

pub use request::request;

use crate::{Context, answer::Answer, chat::FromChat};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    FromChat::new(answer::TextCompletion::new(context, request))
}

#[cfg(test)]
mod tests;
