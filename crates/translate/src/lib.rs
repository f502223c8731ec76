//! One API's requests for another API's servers, and their answers back: a folder for each pair,
//! named by the client's shape and then the provider's.
//!
//! Everything here is pure: a request is mapped whole, an answer piece by piece as it comes. Chat
//! Completions is the shape that every other one can be put into; two pairs make the rest.
//!
//! Each pair is two functions:
//!
//! - `pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest>`
//! - `pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<>`, where `request` is
//!   the client's own body, of which an answer repeats parts
//!
//! Callers take [`route`], [`request`] and [`answer`], which know every pair and how two of them
//! make a way: a Messages client of a provider that has only Responses is read as Chat Completions
//! in between.
//!
//! - [`registry`]: which endpoint serves which shape, and what maps the bytes
//! - [`chat`]: the Chat Completions answer of any backend, as every pair reads it
//! - [`messages_chat`], [`chat_messages`]: Messages and Chat Completions
//! - [`responses_chat`], [`chat_responses`]: Responses and Chat Completions
//! - [`completions_chat`]: legacy Completions for Chat Completions
//! - [`chat_node`]: Chat Completions for a model node, which has no endpoint
//! - [`node_chat`]: the node protocol's consumers for Chat Completions
//! - `chat_request`, `message_request`: requests as they are written for a provider
//! - `instruct`: instructions among the messages of a Chat Completions request
//! - `chat_body`, `from_chat`: a Chat Completions request, as every pair reads it, and its parts
//! - `errors`: a backend's error for a client of OpenAI's APIs

mod answer;
pub mod chat;
mod chat_body;
pub mod chat_messages;
pub mod chat_node;

mod chat_request;
pub mod chat_responses;
pub mod completions_chat;
mod context;
mod errors;
mod from_chat;
mod instruct;
mod message_request;
pub mod messages_chat;
pub mod node_chat;
pub mod registry;
pub mod responses_chat;

pub use answer::{Answer, Body};
pub use context::Context;
pub use protocol::{
    failure::{BadAnswer, MAX_KEPT},
    json::BadRequest,
};
pub use registry::{answer, request, route, served_as};
