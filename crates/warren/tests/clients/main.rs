//! Real clients, as they are, and a real model server, against the real binary.
//!
//! `cargo xtask clients` installs them and runs this; the manifest keeps it out of a plain
//! `cargo test`, because what it needs is some hundred megabytes. Each client is a module: the
//! packages of OpenAI, Anthropic, Google and Cohere for Python and Node tell their own story in a script of
//! scenarios, and the coding agents carry out a tool call. All face a backend that has nothing but
//! Chat Completions, so that their own API is translated, or one that serves them natively.
//!
//! - `program`: a client's process: a home of its own, and no way out but loopback
//! - `house`: a server, a worker, and what the worker lends
//! - `sdk`: one scenario of a script
//! - `workspace`: the coding agents as sessions of a workspace

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod anthropic_node;
mod anthropic_python;
mod claude_code;
mod codex;
mod cohere_python;
mod google_node;
mod google_python;
mod house;
mod llama_cpp;
mod ollama_node;
mod ollama_python;
mod openai_node;
mod openai_python;
mod opencode;
mod program;
mod screens;
mod sdk;
mod workspace;
