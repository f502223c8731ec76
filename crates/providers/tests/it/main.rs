//! Links of providers, over a pipe in memory and under paused time.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod kit;
mod model_node;
mod participant;
mod relay_worker;
