//! From an Ollama client's embed and embeddings to a provider of OpenAI's Embeddings.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `input`, a text or a list of texts (embed) | `input` |
//! | `prompt`, a text (embeddings) | `input` |
//! | `dimensions` (embed) | itself |
//! | `truncate`, `options`, `keep_alive` and fields not known | dropped |
//!
//! The vectors are the provider's numbers, byte for byte.

mod answer;
mod request;

pub use request::{embed_request, embeddings_request};

use self::answer::Form;
use crate::{Context, answer::Answer};

/// Reads the provider's answer for `/api/embed`.
pub fn embed_answer(context: &Context) -> impl Answer + use<> {
    answer::answer(Form::Embed, context)
}

/// Reads the provider's answer for `/api/embeddings`.
pub fn embeddings_answer(context: &Context) -> impl Answer + use<> {
    answer::answer(Form::Embeddings, context)
}

#[cfg(test)]
mod tests;
