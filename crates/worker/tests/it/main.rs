//! A worker between a server of the test's own, over a pipe in memory, and a model server of raw
//! bytes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod answers;
mod cancel;
mod drain;
mod endpoints;
mod engines;
mod faults;
mod flow;
mod links;
mod model_changes;
mod nodes;
mod offers;
mod rooms;
mod support;
mod tunnels;
