//! Participants of rooms: tunnels over a pipe in memory and under paused time, and endpoints.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod bad_frames;
mod endpoints;
mod hang_ups;
mod kit;
mod life;
mod refusals;
