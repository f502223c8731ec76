//! A session as data: the output of a terminal or an agent, and what each viewer has not received
//! yet.
//!
//! The crate has no socket, process, clock or channel of its own: bytes and the time are
//! parameters.
//!
//! It has three modules that never use each other, which `tests/walls.rs` checks:
//!
//! - [`terminal`]: output, its viewers, the screen
//! - [`agent`]: agent command lines, their output, and their turns
//! - [`team`]: teams: messages, results, and waits for them

pub mod agent;
pub mod team;
pub mod terminal;
