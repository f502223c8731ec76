//! A session as data: what a terminal or an agent showed, and what a viewer still lacks.
//!
//! No socket, process, clock or channel of its own: bytes and the time come in.
//!
//! Three modules that never use each other, which `tests/walls.rs` checks:
//!
//! - [`terminal`]: output, its viewers, the screen
//! - [`agent`]: agent command lines, their output, and their turns
//! - [`team`]: teams: messages, results, and waiting for them

pub mod agent;
pub mod team;
pub mod terminal;
