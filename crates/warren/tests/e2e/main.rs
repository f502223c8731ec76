//! Black-box tests of the real binary over real sockets, written from the protocol's walkthroughs
//! and the contract of the command line and the port.
//!
//! Each walkthrough is a file, told in both forms of the relay protocol; the rest is sorted by
//! what goes wrong.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod access;
mod bad_requests;
mod bad_workers;
mod client_faults;
mod common;
mod headers;
mod keepalive;
mod memory;
mod observe;
mod routing;
mod shutdown;
mod stream_errors;
mod transport;
mod up;
mod walkthrough_01_registration;
mod walkthrough_02_plain_request;
mod walkthrough_03_stream;
mod walkthrough_04_cancel;
mod walkthrough_05_requeue;
mod walkthrough_06_queue_full;
mod walkthrough_07_no_provider;
mod walkthrough_08_drain;
mod walkthrough_09_models;
mod walkthrough_10_queue_timeout;
mod walkthrough_11_request_timeout;
mod worker_faults;
