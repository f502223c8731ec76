//! A relay worker in the hands of a test, in the stock form and in the binary form.
//!
//! It shares no code with the house's own worker, and its JSON is written out literally, so that
//! it says what a stock worker says. Only the binary frames come from the protocol crate, whose
//! bytes have tests of their own.

mod connect;
mod inbox;
mod speak;

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;

pub use self::connect::{Connect, Refused};
use self::inbox::Inbox;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON messages, as stock workers and servers speak.
    Stock,
    /// Requests and answers in binary frames, as two Warrens speak.
    Binary,
}

#[derive(Debug, Clone)]
pub struct Job {
    pub request_id: String,
    /// Its number on this link; 0 in the stock form.
    pub number: u32,
    pub model: String,
    pub path: String,
    pub streaming: bool,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Job {
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(known, _)| known == name)?;
        Some(value)
    }
}

/// A worker's link to a server. Dropping it closes the connection without a word.
#[derive(Debug)]
pub struct FakeWorker {
    socket: WebSocketStream<TcpStream>,
    form: Form,
    id: String,
    inbox: Inbox,
    begun: HashSet<u32>,
    credit: HashMap<u32, u64>,
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

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The form it speaks: the binary one only when the server has agreed.
    pub fn form(&self) -> Form {
        self.form
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};
    use protocol::relay::binary::{HeaderFields, RequestHead, ServerFrame, Version, WorkerFrame};
    use tokio::net::TcpListener;
    use tokio_tungstenite::{
        accept_hdr_async,
        tungstenite::{
            Message,
            handshake::server::{Request, Response},
        },
    };

    use super::*;

    type Server = WebSocketStream<TcpStream>;

    /// A worker of the given form, registered, and the server's end of its link.
    async fn pair(form: Form) -> (FakeWorker, Server) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let worker =
            tokio::spawn(
                async move { Connect::new(address).form(form).join("w", &["m"], 2).await },
            );
        let stream = listener.accept().await.unwrap().0;
        #[expect(clippy::result_large_err, reason = "the callback's type is given")]
        let agree = |request: &Request, mut response: Response| {
            if let Some(offer) = request.headers().get("sec-websocket-protocol") {
                response.headers_mut().insert("sec-websocket-protocol", offer.clone());
            }
            Ok(response)
        };
        let mut server = accept_hdr_async(stream, agree).await.unwrap();
        assert_eq!(heard(&mut server).await["type"], "register");
        tell(&mut server, &json!({"type": "register_ack", "worker_id": "w-1"})).await;
        (worker.await.unwrap(), server)
    }

    async fn tell(server: &mut Server, message: &Value) {
        server.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn heard(server: &mut Server) -> Value {
        let message = server.next().await.unwrap().unwrap();
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn the_stock_form_is_json_alone() {
        let (mut worker, mut server) = pair(Form::Stock).await;
        assert_eq!((worker.id(), worker.form()), ("w-1", Form::Stock));
        tell(&mut server, &json!({"type": "ping", "timestamp_unix_ms": 7})).await;
        let request = json!({
            "type": "request", "request_id": "r-1", "model": "m", "is_streaming": true,
            "endpoint_path": "/v1/x", "body": "{}", "headers": {"a": "b"},
        });
        tell(&mut server, &request).await;
        let job = worker.expect_job().await;
        assert_eq!((job.header("a"), &job.body[..]), (Some("b"), &b"{}"[..]));
        let pong = json!({"type": "pong", "current_load": 0, "timestamp_unix_ms": 7});
        assert_eq!(heard(&mut server).await, pong);
        worker.chunk(&job, "data: 1\n\n").await;
        worker.finish(&job).await;
        let chunk = json!({"type": "response_chunk", "request_id": "r-1", "chunk": "data: 1\n\n"});
        assert_eq!(heard(&mut server).await, chunk);
        assert_eq!(heard(&mut server).await["type"], "response_complete");
        tell(&mut server, &json!({"type": "cancel", "request_id": "r-1", "reason": "timeout"}))
            .await;
        assert_eq!(worker.expect_cancel().await, ("r-1".to_owned(), json!("timeout")));
        server.close(None).await.unwrap();
        assert_eq!(worker.expect_close().await, None);
    }

    #[tokio::test]
    async fn the_binary_form_carries_requests_in_frames() {
        let (mut worker, mut server) = pair(Form::Binary).await;
        let head = RequestHead {
            request_id: "r-1".to_owned(),
            model: "m".to_owned(),
            endpoint_path: "/v1/x".to_owned(),
            is_streaming: true,
            headers: HeaderFields::default(),
            body_len: 4,
        };
        let request = ServerFrame::Request { job: 9, head, body: Bytes::from_static(b"ab") };
        let rest = ServerFrame::Body { job: 9, piece: Bytes::from_static(b"cd") };
        let credit = ServerFrame::Credit { job: 9, bytes: 100 };
        for frame in [request, rest, credit] {
            server.send(Message::Binary(frame.encode(Version::NEWEST))).await.unwrap();
        }
        let job = worker.expect_job().await;
        assert_eq!((job.number, &job.body[..]), (9, &b"abcd"[..]));
        worker.expect_credit(&job, 100).await;
        worker.chunk(&job, "data").await;
        worker.finish(&job).await;
        let mut kinds = Vec::new();
        for _ in 0..3 {
            let message = server.next().await.unwrap().unwrap();
            kinds.push(WorkerFrame::decode(message.into_data()).unwrap());
        }
        assert!(
            matches!(
                &kinds[..],
                [
                    WorkerFrame::Head { job: 9, .. },
                    WorkerFrame::Chunk { job: 9, .. },
                    WorkerFrame::End { job: 9, .. }
                ]
            ),
            "{kinds:?}"
        );
        worker.vanish();
        assert!(!matches!(server.next().await, Some(Ok(_))));
    }

    #[tokio::test]
    async fn a_refusal_is_no_panic() {
        let backend = crate::MockBackend::start(&[]).await;
        let refused = Connect::new(backend.address()).open().await.unwrap_err();
        assert_eq!(refused.status, 404);
    }
}
