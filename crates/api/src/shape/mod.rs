//! The APIs, a file each: their errors, and how they keep a stream alive.

mod anthropic;
mod contract;
mod gemini;
pub(crate) mod in_room;
mod node_chat;
mod ollama;
mod openai;
mod rerank;

use base::Endpoint;
use protocol::gemini::{Call, call};

pub(crate) use contract::Shape;

pub(crate) const ALL: [&'static dyn Shape; 25] = [
    &openai::OpenAi(Endpoint::ChatCompletions),
    &openai::OpenAi(Endpoint::Completions),
    &openai::OpenAi(Endpoint::Embeddings),
    &openai::Responses,
    &anthropic::Anthropic(Endpoint::Messages),
    &anthropic::Anthropic(Endpoint::CountTokens),
    &node_chat::NodeChat,
    &ollama::Ollama(Endpoint::OllamaChat),
    &ollama::Ollama(Endpoint::OllamaGenerate),
    &ollama::Ollama(Endpoint::OllamaRaw),
    &ollama::Ollama(Endpoint::OllamaEmbed),
    &ollama::Ollama(Endpoint::OllamaEmbeddings),
    &gemini::Gemini(Endpoint::GeminiGenerate),
    &gemini::Gemini(Endpoint::GeminiCountTokens),
    &gemini::Gemini(Endpoint::GeminiEmbed),
    &gemini::Gemini(Endpoint::GeminiBatchEmbed),
    &openai::OpenAi(Endpoint::Transcriptions),
    &openai::OpenAi(Endpoint::SoundTranslations),
    &openai::OpenAi(Endpoint::Speech),
    &openai::OpenAi(Endpoint::ImageGenerations),
    &openai::OpenAi(Endpoint::ImageEdits),
    &openai::OpenAi(Endpoint::ImageVariations),
    &openai::OpenAi(Endpoint::Moderations),
    &rerank::Rerank,
    &openai::OpenAi(Endpoint::Score),
];

/// Gemini's streams that are JSON arrays, where the client does not ask for events.
pub(crate) const GEMINI_ARRAY: &dyn Shape = &gemini::GeminiArray;

/// For each path the shape that its requests have until their body is read.
pub(crate) fn first_at_each_path() -> impl Iterator<Item = &'static dyn Shape> {
    ALL.into_iter().filter(|shape| is_first(shape.endpoint()))
}

/// Whether no endpoint before this one has its path.
pub(crate) fn is_first(endpoint: Endpoint) -> bool {
    Endpoint::of_path(endpoint.path()) == Some(endpoint)
}

/// The API of an endpoint.
pub(crate) fn of(endpoint: Endpoint) -> &'static dyn Shape {
    ALL.into_iter().find(|shape| shape.endpoint() == endpoint).unwrap_or(ALL[0])
}

/// The API of a path; OpenAI's for an unknown path.
pub(crate) fn of_path(path: &str) -> &'static dyn Shape {
    if call::is_geminis(path) {
        return of(Call::of(path, None).map_or(Endpoint::GeminiGenerate, |call| call.endpoint));
    }
    ALL.into_iter().find(|shape| shape.endpoint().path() == path).unwrap_or(ALL[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_has_its_shape() {
        assert!(ALL.into_iter().map(Shape::endpoint).eq(Endpoint::ALL));
        for shape in first_at_each_path() {
            assert_eq!(of_path(shape.endpoint().path()).endpoint(), shape.endpoint());
        }
        assert_eq!(of_path("/v1/nothing").endpoint(), Endpoint::ChatCompletions);
    }
}
