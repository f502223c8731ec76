//! A replayed load of conversations, and model servers that keep caches of prompts as llama.cpp does. The scenario
//! `affinity` plays it in simulated time and in real time.
//!
//! - [`talk`]: the conversations
//! - [`cache`]: which beginning of a prompt is computed already; [`engine`]: how long the rest takes
//! - [`simulation`]: all of it with Warren's dispatcher, without a clock
//! - [`oracle`]: the policy that sees into the caches
//! - [`serve`]: such a model server in real time

pub(crate) mod cache;
pub(crate) mod engine;
pub(crate) mod oracle;
pub(crate) mod serve;
pub(crate) mod simulation;
pub(crate) mod talk;

/// Bytes of text that make a token.
pub(crate) const BYTES_PER_TOKEN: usize = 4;

/// Four workers with four slots each.
pub(crate) const WORKERS: usize = 4;
pub(crate) const SLOTS: usize = 4;
