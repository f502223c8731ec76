//! Several servers that act as one over a NATS server: real processes, a real NATS.
//!
//! The feature `testing` builds it: a plain `cargo test` needs no NATS.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod doctor;
mod ends;
mod odd;
mod outage;
mod servers;
mod setting_up;
mod slots;
mod usage;
