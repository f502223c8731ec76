//! Translates requests in one API's shape into another's, and the answers back. There is a module
//! for each pair, named by the client's shape and then the provider's.
//!
//! Everything here is pure. A request is translated as a whole, and an answer piece by piece as it
//! comes. Most shapes can be translated into Chat Completions; from there, a second pair leads to
//! further endpoints.
//!
//! Each pair is two functions:
//!
//! - `pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest>`
//! - `pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<>`, where `request` is
//!   the client's own body, because an answer repeats parts of it
//!
//! Callers use [`route`], [`request`] and [`answer`], which know every pair and how to chain two of
//! them: the request of a Messages client for a provider with only Responses becomes Chat
//! Completions in between.
//!
//! - [`registry`]: the endpoint that serves a shape, and the translation for it
//! - [`chat`]: the Chat Completions answer of any backend, as every pair reads it
//! - [`messages_chat`], [`chat_messages`]: Messages and Chat Completions
//! - [`responses_chat`], [`chat_responses`]: Responses and Chat Completions
//! - [`completions_chat`]: legacy Completions for Chat Completions
//! - [`chat_node`]: Chat Completions for a model node, which has no endpoint
//! - [`chat_ollama`]: Chat Completions for an Ollama in its own API, with the length of its context
//! - [`rerank_texts`]: rankings for a server of Text Embeddings Inference
//! - [`node_chat`]: the node protocol's consumers for Chat Completions
//! - [`gemini_chat`]: Gemini's API for Chat Completions
//! - [`gemini_count`]: its count of tokens, for that of Messages
//! - [`gemini_embed`]: its embeddings, for OpenAI's
//! - [`ollama_chat`], [`ollama_generate`]: Ollama's chat and generate for Chat Completions
//! - [`ollama_completions`]: Ollama's generate, raw or with a suffix, for legacy Completions
//! - [`ollama_embeddings`]: Ollama's embed and embeddings for OpenAI's Embeddings
//! - `ollama`: what the four of them share
//! - [`continuation`]: answers whose provider was lost, continued by another
//! - `chat_body`, `from_chat`: a Chat Completions request, as every pair reads it, and its parts
//! - `errors`: a backend's error in the words of the client's API
//! - `chat_request`, `message_request`: requests for a provider
//! - `instruct`: instructions among the messages of a Chat Completions request
//! - `order`: results of tools directly after their calls
//! - `turns`, `thoughts`: the messages of a Chat Completions request, in order, and their thoughts
//! - `refusal`: a refusal in the names of the client's own API
//! - `ids`, `media`, `schema`: ids, media types and schemas as providers demand them
//!
//! Many types of an API exist twice: one to read it, lenient and with borrowed values, and one to write it exactly.
//! Continuations read fewer fields of a stream than translations. Code that writes requests for two APIs keeps each
//! API's order of fields.

mod answer;
pub mod chat;
mod chat_body;
pub mod chat_messages;
pub mod chat_node;
pub mod chat_ollama;

mod chat_request;
pub mod chat_responses;
pub mod completions_chat;
pub mod continuation;
mod errors;
mod from_chat;
pub mod gemini_chat;
pub mod gemini_count;
pub mod gemini_embed;
mod ids;
mod instruct;
#[cfg(test)]
mod kit;
mod media;
mod message_request;
pub mod messages_chat;
pub mod node_chat;
mod ollama;
pub mod ollama_chat;
pub mod ollama_completions;
pub mod ollama_embeddings;
pub mod ollama_generate;
mod order;
mod refusal;
pub mod registry;
pub mod rerank_texts;
pub mod responses_chat;
mod schema;
mod thoughts;
mod turns;

pub use answer::{Answer, Body, Context};
pub use errors::api_error;
pub use protocol::{
    failure::{BadAnswer, MAX_KEPT},
    json::BadRequest,
};
pub use registry::{answer, ollama_answer, ollama_request, request, route, served_as};
