//! Black-box tests of the real binary over real sockets, written from the protocol's walkthroughs
//! and the contract of the command line and the port.
//!
//! Walkthroughs are files, most run in both forms of the relay protocol. The rest has one test for
//! each path through the program, and what only a process shows: its disk, memory, log and end. What
//! the parts do with bad input is tested in their crates.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod access;
mod aliases;
mod ask;
mod backup;
mod bad_requests;
mod chat;
mod cli;
mod client_faults;
mod clouds;
mod common;
mod config;
mod database;
mod doctor;
mod find_server;
mod for_programs;
mod gemini;
mod headers;
mod joining;
mod keepalive;
mod keys;
mod limits;
mod logs;
mod loops;
mod mdns;
mod media;
mod memory;
mod mesh;
mod model_engines;
mod model_loads;
mod model_pull;
mod network;
mod nodes;
mod observe;
mod ollama;
mod ollama_backend;
mod pages;
mod refusals;
mod reload;
mod resume;
mod resume_shapes;
mod revoked;
mod room_cli;
mod room_lend;
mod room_people;
mod room_stock;
mod rooms;
mod rooms_kit;
mod routing;
mod secrets;
mod series;
mod service;
mod shutdown;
mod status;
mod stock_relay;
mod stored_responses;
mod strangers;
mod stream_errors;
mod terminal;
mod tracing;
mod translation;
mod transport;
mod tui;
mod up;
mod usage;
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
mod web_page;
mod worker_faults;
mod workspace;
