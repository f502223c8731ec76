//! The answer to a prompt: it follows from the prompt, so that every client knows what it
//! has to get, and no two answers are alike.

use serde_json::{Value, json};
use testkit::lab::{Nonce, chat_stream, chat_whole};

/// The pieces of text of its answer.
pub(crate) fn pieces(nonce: Nonce) -> impl Iterator<Item = String> {
    nonce.pieces(String::new())
}

pub(crate) fn stream(nonce: Nonce) -> String {
    chat_stream(pieces(nonce), &json!({}))
}

pub(crate) fn whole(nonce: Nonce) -> Value {
    chat_whole(&pieces(nonce).collect::<String>(), &json!({}))
}
