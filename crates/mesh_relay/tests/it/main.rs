//! The relay over real sockets, with nodes that share no code with it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "a test fails by panicking, and messages are written where they are used"
)]

mod bad_input;
mod flow;
mod kit;
mod life;
mod messages;
