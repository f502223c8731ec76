//! How a model server goes on with an answer that has begun.

use serde::{Deserialize, Serialize};

/// How a model server goes on with the beginning of an answer: what it has to be sent beside that.
///
/// A server that knows either of these also continues the prompt of a text completion as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuation {
    /// It goes on with the last message whenever that is the assistant's, as llama.cpp does.
    LastMessage,
    /// It does so when `continue_final_message` is true and `add_generation_prompt` false, as vLLM does.
    FinalMessage,
}
