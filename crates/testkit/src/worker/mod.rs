//! A relay worker in the hands of a test, in the stock form and in the binary form.
//!
//! It shares no code with the house's own worker, and its JSON is written out literally, so that
//! it says what a stock worker says. Only the binary frames come from the protocol crate, whose
//! bytes have tests of their own.

mod connect;
mod inbox;
mod speak;

use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;

pub use self::connect::{Connect, Refused};
use self::inbox::Inbox;

/// In which of its two forms the relay protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON messages, as stock workers and servers speak.
    Stock,
    /// Requests and answers in binary frames, as two Warrens speak.
    Binary,
}

/// A request that a worker was given.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its `request_id`.
    pub request_id: String,
    /// Its number on this link; 0 in the stock form.
    pub number: u32,
    /// The model.
    pub model: String,
    /// The endpoint's path, with its query.
    pub path: String,
    /// Whether a stream is asked for.
    pub streaming: bool,
    /// Headers for the backend.
    pub headers: Vec<(String, String)>,
    /// The body as the client sent it.
    pub body: Bytes,
}

impl Job {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        Some(value)
    }
}

/// A worker's link to a server. Dropping it closes the connection without a word.
pub struct FakeWorker {
    socket: WebSocketStream<TcpStream>,
    form: Form,
    id: String,
    inbox: Inbox,
    begun: HashSet<u32>,
    credit: HashMap<u32, u64>,
    answers_pings: bool,
}

impl fmt::Debug for FakeWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeWorker").field("id", &self.id).field("form", &self.form).finish()
    }
}

impl FakeWorker {
    /// Registers as the spec's first walkthrough does, and returns the acknowledgement.
    pub async fn register(&mut self, name: &str, models: &[&str], max_concurrent: u32) -> Value {
        self.register_as(&json!({
            "type": "register", "worker_name": name, "models": models,
            "max_concurrent": max_concurrent, "protocol_version": "1", "current_load": 0,
        }))
        .await
    }

    /// Registers with a message of the test's own, and returns the acknowledgement.
    pub async fn register_as(&mut self, message: &Value) -> Value {
        self.send(message).await;
        let ack = self.expect_message("register_ack").await;
        ack["worker_id"].as_str().expect("a worker_id").clone_into(&mut self.id);
        ack
    }

    /// Its `worker_id`, once it is registered.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The form it speaks: the binary one only when the server has agreed.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Answers no more pings, as a worker that hangs.
    pub fn ignore_pings(&mut self) {
        self.answers_pings = false;
    }
}
