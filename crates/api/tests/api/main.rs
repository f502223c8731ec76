//! The consumer APIs as HTTP services, with a provider in the hands of the test, under paused
//! time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod admin;
mod admission;
mod aliases;
mod background;
mod elsewhere;
mod forms;
mod gemini;
mod joining;
mod kit;
mod node_chat;
mod ollama;
mod ollama_models;
mod response_ends;
mod room_homes;
mod room_inference;
mod room_keys;
mod room_kit;
mod room_responses;
mod rooms_ask;
mod rooms_events;
mod rooms_messages;
mod rooms_plane;
mod route;
mod store_kit;
mod stored_responses;
mod streams;
mod translation;
mod usage;
mod waiting;
