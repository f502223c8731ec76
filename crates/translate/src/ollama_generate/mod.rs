//! From an Ollama client's generate to a Chat Completions provider. A request with a raw prompt or
//! a suffix goes to [Completions](crate::ollama_completions) instead.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `system` | the first message |
//! | `prompt`, with `images` | the user's message |
//! | `format`, `think`, `options`, `stream` | as in [chat](crate::ollama_chat) |
//! | `template`, and a `context` that is not empty | refused |
//! | `keep_alive` and fields not known | dropped |
//!
//! The answer has no `context`.

mod request;

pub use request::request;

use crate::{
    Context,
    answer::Answer,
    chat::FromChat,
    ollama::{Form, OllamaWriter},
    ollama_chat,
    refusal::ClientNames,
};

/// The client's names of fields, for refusals by a second translation.
pub(crate) const NAMES: ClientNames =
    ClientNames { said: "prompt", origins: |_| Vec::new(), ..ollama_chat::NAMES };

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    FromChat::new(OllamaWriter::new(Form::Generate, context, request))
}

#[cfg(test)]
mod tests;
