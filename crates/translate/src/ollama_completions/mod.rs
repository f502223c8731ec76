//! From an Ollama client's generate with a raw prompt or a suffix to a legacy Completions provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `prompt`, `suffix` | themselves |
//! | `options` | see `ollama::options`; without `num_predict` at most 1024 tokens, since some servers take 16 for granted |
//! | `stream` | itself; absent, true (the API writes it into the body) |
//! | `images`; `format` other than an empty text; a `context` that is not empty | refused |
//! | `raw`, `system`, `template`, `think`, `keep_alive` and fields not known | dropped: a raw prompt has its own |
//!
//! A provider without Completions cannot serve such a request, because Chat Completions put the model's chat
//! template around every text.

mod reading;
mod request;

pub use request::request;

use self::reading::TextReading;
use crate::{
    Context,
    answer::Answer,
    chat::FromProvider,
    ollama::{Form, OllamaWriter},
};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    FromProvider::<TextReading, _>::new(OllamaWriter::new(Form::Generate, context, request))
}

#[cfg(test)]
mod tests;
