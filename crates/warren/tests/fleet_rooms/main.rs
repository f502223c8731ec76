//! Rooms of several real servers that act as one, with a PostgreSQL and a NATS of their own.
//!
//! The feature `testing` builds it: a plain `cargo test` needs neither.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod deaths;
mod everywhere;
mod kit;
