//! Several servers that share their keys and their usage in a PostgreSQL, which goes away and comes back.
//!
//! The feature `testing` builds it: a plain `cargo test` needs no PostgreSQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod changes;
mod doctor;
mod import;
mod limits;
mod outage;
mod responses;
mod servers;
mod slow;
mod tls;
