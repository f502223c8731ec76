//! Rooms as a server has them: made, found, entered, joined, closed, and there again after a restart.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bounds;
mod entering;
mod fleet;
mod keeping;
mod kit;
mod participants;
