//! Links to workers, over a pipe in memory and under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod bad_frames;
mod endpoints;
mod kit;
mod life;
mod rooms;
mod unread;
