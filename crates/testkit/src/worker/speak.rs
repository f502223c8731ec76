//! The messages of a worker.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::SinkExt;
use protocol::relay::binary::{JobFailure, ResponseEnd, ResponseHead, Version, WorkerFrame};
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::{FakeWorker, Form, Job, inbox::Inbox};
use crate::wait::within;

const EVENT_STREAM: (&str, &str) = ("content-type", "text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

impl FakeWorker {
    pub(super) fn on(socket: WebSocketStream<TcpStream>, form: Form) -> Self {
        Self {
            socket,
            form,
            id: String::new(),
            inbox: Inbox::default(),
            begun: HashSet::new(),
            credit: HashMap::new(),
        }
    }

    pub async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        self.put(Message::text(text)).await;
    }

    pub async fn send_binary(&mut self, bytes: impl Into<Bytes>) {
        self.put(Message::Binary(bytes.into())).await;
    }

    pub async fn pong(&mut self, load: u32) {
        self.send(&json!({"type": "pong", "current_load": load})).await;
    }

    pub async fn update_models(&mut self, models: &[&str], load: u32) {
        let message = json!({"type": "models_update", "models": models, "current_load": load});
        self.send(&message).await;
    }

    /// Sends the head of an answer. The stock form has none: there, nothing happens.
    pub async fn begin(&mut self, job: &Job, status: u16, headers: &[(&str, &str)]) {
        if self.form == Form::Binary {
            self.begun.insert(job.number);
            let headers = headers.iter().copied().collect();
            let head = ResponseHead { status_code: status, headers };
            self.frame(&WorkerFrame::Head { job: job.number, head }).await;
        }
    }

    /// Sends a piece of a stream; the head of one before it, if there was none.
    pub async fn chunk(&mut self, job: &Job, chunk: &str) {
        match self.form {
            Form::Stock => {
                let message = json!({
                    "type": "response_chunk", "request_id": job.request_id, "chunk": chunk,
                });
                self.send(&message).await;
            }
            Form::Binary => {
                if !self.begun.contains(&job.number) {
                    self.begin(job, 200, &[EVENT_STREAM]).await;
                }
                let bytes = Bytes::copy_from_slice(chunk.as_bytes());
                self.frame(&WorkerFrame::Chunk { job: job.number, bytes }).await;
            }
        }
    }

    pub async fn finish(&mut self, job: &Job) {
        match self.form {
            Form::Stock => self.respond(job, 200, &[EVENT_STREAM], "").await,
            Form::Binary => self.end(job).await,
        }
    }

    pub async fn complete(&mut self, job: &Job, status: u16, body: &Value) {
        self.complete_with(job, status, &[JSON], &body.to_string()).await;
    }

    pub async fn complete_with(
        &mut self,
        job: &Job,
        status: u16,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        match self.form {
            Form::Stock => self.respond(job, status, headers, body).await,
            Form::Binary => {
                self.begin(job, status, headers).await;
                self.chunk(job, body).await;
                self.end(job).await;
            }
        }
    }

    /// Says that a job failed: an `error` in the stock form, a fail frame in the binary one.
    pub async fn fail(&mut self, job: &Job, code: &str, message: &str) {
        match self.form {
            Form::Stock => {
                let error = json!({
                    "type": "error", "request_id": job.request_id, "code": code, "message": message,
                });
                self.send(&error).await;
            }
            Form::Binary => {
                let failure =
                    JobFailure { code: code.to_owned().into(), message: message.to_owned() };
                self.frame(&WorkerFrame::Fail { job: job.number, failure }).await;
            }
        }
    }

    /// Closes in order and waits for the server to do so, too.
    pub async fn close(mut self) {
        // The server may be closing itself, which is as good.
        let _closing = self.socket.close(None).await;
        self.expect_close().await;
    }

    /// Resets the connection, as when the machine vanishes.
    pub fn vanish(self) {
        self.socket.get_ref().set_zero_linger().expect("a TCP connection");
    }

    async fn respond(&mut self, job: &Job, status: u16, headers: &[(&str, &str)], body: &str) {
        let headers: Map<String, Value> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let message = json!({
            "type": "response_complete", "request_id": job.request_id, "status_code": status,
            "headers": headers, "body": body,
        });
        self.send(&message).await;
    }

    async fn end(&mut self, job: &Job) {
        self.begun.remove(&job.number);
        let end = ResponseEnd::default();
        self.frame(&WorkerFrame::End { job: job.number, end }).await;
    }

    async fn frame(&mut self, frame: &WorkerFrame) {
        self.send_binary(frame.encode(Version::NEWEST)).await;
    }

    /// A server that has closed the link is no failure here: what it said is read later.
    async fn put(&mut self, message: Message) {
        let _closed = within("sending to the server", self.socket.send(message)).await;
    }
}
