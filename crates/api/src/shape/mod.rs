//! The APIs, a file each: their errors, and how they keep a stream alive.

mod anthropic;
mod gemini;
pub(crate) mod in_room;
mod node_chat;
mod ollama;
mod openai;
mod rerank;

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::{HeaderMap, Uri};
use protocol::{
    gemini::{Call, call},
    sse::Boundary,
};
use scheduler::Head;

use crate::{error::ApiError, head};

/// The differences between the APIs.
pub(crate) trait Shape: Send + Sync {
    /// The endpoint: the path and the shape of the requests.
    fn endpoint(&self) -> Endpoint;

    /// An error as a response body, JSON.
    fn error_body(&self, error: &ApiError, id: JobId) -> String;

    /// An error as the last event of a stream. `number`: the event's sequence number, in the API that has them.
    fn error_event(&self, error: &ApiError, id: JobId, number: u64) -> String;

    /// A sign of life between two events of a stream.
    fn keepalive(&self) -> &'static [u8];

    /// A sign of life before the first event. `words` say what the request waits for; they are one line.
    fn waiting(&self, words: &str) -> String {
        format!(": {words}\n\n")
    }

    /// A comment for people between two events of a stream; `None` if clients would take it for an event.
    fn comment(&self, words: &str) -> Option<String> {
        Some(format!(": {words}\n\n"))
    }

    /// Whether a sign of life, a comment or an event may be added at this point of a stream.
    fn may_add(&self, at: &Boundary) -> bool {
        at.at_event_start()
    }

    /// The bytes that end an incomplete event, before another is added.
    fn closing(&self, at: &Boundary) -> &'static [u8] {
        at.closing()
    }

    /// The API's own header for the job's id, beside `x-request-id`.
    fn id_header(&self) -> Option<&'static str> {
        None
    }

    /// Whether its answers are always streams.
    fn always_streams(&self) -> bool {
        false
    }

    /// Whether its clients declare the body as JSON.
    fn says_json(&self) -> bool {
        true
    }

    /// Whether an answer with this head is a stream to which a sign of life or an error can be added.
    fn is_stream(&self, head: &Head) -> bool {
        head::is_event_stream(head)
    }

    /// The content type of its streams.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// Rewrites headers that only this API has into the usual ones.
    fn adapt(&self, _headers: &mut HeaderMap) {}

    /// The shape of a request with this body, if it is another one with the same path.
    fn of_body(&self, _body: &[u8]) -> Option<&'static dyn Shape> {
        None
    }

    /// The body with all fields that routing reads: those that this API has in the path are added, and those whose
    /// default differs in this API.
    ///
    /// # Errors
    /// The client's error, when path and body do not go together.
    fn complete(&self, _uri: &Uri, body: Bytes) -> Result<Bytes, ApiError> {
        Ok(body)
    }
}

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

/// Gemini's streams that are JSON arrays, for clients that do not ask for events.
pub(crate) const GEMINI_ARRAY: &dyn Shape = &gemini::GeminiArray;

/// For each path the shape that a request has until its body is read.
pub(crate) fn first_at_each_path() -> impl Iterator<Item = &'static dyn Shape> {
    ALL.into_iter().filter(|shape| is_first(shape.endpoint()))
}

/// Whether this is the first endpoint with its path.
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
