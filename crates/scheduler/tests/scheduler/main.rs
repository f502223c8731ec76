//! The scheduler and its exchanges, under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cancel;
mod complete;
mod fallback;
mod far;
mod flow;
mod kit;
mod preparing;
mod refused;
mod remote;
mod requeue;
mod resume;
mod revoke;
mod running;
mod terms;
mod timeouts;
mod translation;
mod usage;
