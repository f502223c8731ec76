//! The client of model servers, against a server of raw bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod exchange;
mod facts;
mod http;
mod keepalive;
mod models;
mod probe;
