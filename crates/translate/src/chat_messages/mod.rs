//! From a Chat Completions client to a Messages provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | text, pictures, PDF files as data, tools, calls and their results | carried, results directly after their calls, see `turns` |
//! | ids of calls | in letters, digits, `_` and `-`, each once |
//! | text and stop sequences of white space only, white space at the end of an assistant's last words | left out, as Messages refuses them |
//! | calls while no tools are offered | the called tools are offered, and `tool_choice` is `none` |
//! | an assistant that speaks first | comes after a user's `Begin.` |
//! | thoughts of earlier turns | with Anthropic's signature (`reasoning_details`, `thinking_blocks`) as `thinking`, encrypted ones as `redacted_thinking`; without one they are dropped, as Anthropic's servers refuse them |
//! | `system` and `developer` messages | joined, in their order, as `system`: Messages has no other place |
//! | messages of one role in a row, results of tools among the user's | joined to one |
//! | `max_completion_tokens`, else `max_tokens` | carried; absent: [`DEFAULT_TOKENS`], as Messages demands a limit |
//! | `temperature` | carried, over 1 as 1, the most that Messages knows |
//! | `top_p`, `top_k`, `stop`, `stream`, `user` (256 bytes of it), `parallel_tool_calls`, `tool_choice` | carried |
//! | `response_format` | a JSON schema is carried; `json_object` has no equal and is refused |
//! | `n` over 1, `logprobs`, `top_logprobs`, `logit_bias`, `functions`, `function_call`, `audio`, `modalities` other than text, `web_search_options` | refused by name |
//! | `seed`, `frequency_penalty`, `presence_penalty`, `reasoning_effort`, `verbosity`, `prediction`, `metadata`, `store`, `service_tier`, names of participants, and fields not known | dropped |
//!
//! Arguments of an earlier call that are not a JSON object become an object with the text as
//! `arguments`: a model may have broken them, and the conversation must continue.
//!
//! In the answer, thoughts are `reasoning_content`. Blocks of tools that the provider runs itself
//! are ignored; the text around them gives their results.

mod answer;
mod conversation;
mod event;
mod request;
mod tools;

use crate::{Context, answer::Answer, chat::chat_answer};

pub use request::{DEFAULT_TOKENS, request};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    chat_answer::<answer::Reading>(context, request)
}

#[cfg(test)]
mod tests;
