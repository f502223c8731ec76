//! A client of the workspace in the hands of a test, and what belongs to it.
//!
//! The client is written without the house's own messages, so that a fault in those cannot hide in
//! its tests: it writes and reads JSON, and reads the binary frame with code of its own.
//!
//! - [`client`]: [`WorkspaceClient`], one connection, and what it gets
//! - [`follow`]: a session's output over any number of connections, nothing lost and nothing twice
//! - [`cutter`]: a way to a server that is cut again and again
//! - [`mark`]: processes that a test finds again
//! - [`samples`]: one message of each kind

use base64::{Engine, prelude::BASE64_STANDARD};

pub mod client;
pub mod cutter;
pub mod follow;
pub mod mark;
pub mod samples;

pub use client::{Knock, Output, ServerMessage, WorkspaceClient};
pub use cutter::Cutter;
pub use follow::{Follow, Step};
pub use mark::Mark;
pub use samples::sample;

/// The `type` of every message that a client may say.
pub fn client_messages() -> &'static [&'static str] {
    protocol::workspace::RequestKind::NAMES
}

pub fn encode(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

pub fn decode(text: &str) -> Vec<u8> {
    BASE64_STANDARD.decode(text).expect("base64")
}

#[cfg(test)]
mod tests;
