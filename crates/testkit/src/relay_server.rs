//! A stock-shaped relay server in the hands of a test.
//!
//! It lets workers in as the stock server does, and tells the test what its client would have got. Its JSON is
//! written out literally, and it shares no code with the house.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
    },
};

use crate::wait::within;

/// A server on a port of its own. It lets workers in only while a test waits for one.
#[derive(Debug)]
pub struct RelayServer(TcpListener);

#[derive(Debug)]
pub struct RelayLink {
    socket: WebSocketStream<TcpStream>,
    /// The query that the worker dialled with.
    pub query: String,
    /// The secret that it presented.
    pub secret: String,
    requests: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelayAnswer {
    pub status: u64,
    pub content_type: String,
    pub body: String,
}

impl RelayServer {
    pub async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.expect("a port for the server"))
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().expect("its address"))
    }

    /// The next worker, registered and ready: it has sent its models once more, which is when a stock
    /// server hands out what is queued.
    pub async fn worker(&self) -> RelayLink {
        let (stream, _) = within("a worker", self.0.accept()).await.expect("a connection");
        let (mut query, mut secret) = (String::new(), String::new());
        #[expect(clippy::result_large_err, reason = "the callback's type is given")]
        let see = |request: &Request, response: Response| {
            query = request.uri().query().unwrap_or_default().to_owned();
            let shown = request.headers().get("x-worker-secret");
            secret = shown.and_then(|shown| shown.to_str().ok()).unwrap_or_default().to_owned();
            Ok(response)
        };
        let upgrade = within("an upgrade", accept_hdr_async(stream, see)).await;
        let socket = upgrade.expect("a WebSocket");
        let mut link = RelayLink { socket, query, secret, requests: 0 };
        link.register().await;
        link
    }
}

impl RelayLink {
    async fn register(&mut self) {
        let register = self.said().await;
        assert_eq!(register["type"], "register", "{register}");
        let version = register.get("protocol_version");
        assert!(version.is_none_or(|version| version == "2026-04-bridge-v1"), "{register}");
        self.say(&json!({
            "type": "register_ack", "worker_id": "worker-1", "models": register["models"],
            "protocol_version": version,
        }))
        .await;
        assert_eq!(self.said().await["type"], "models_update");
    }

    /// The answer to a client that posts this body to `path`: a stream, if the body asks for one.
    pub async fn ask(&mut self, path: &str, body: &Value) -> RelayAnswer {
        self.requests += 1;
        let (id, streams) = (format!("request-{}", self.requests), body["stream"] == true);
        self.say(&json!({
            "type": "request", "request_id": id, "model": body["model"], "endpoint_path": path,
            "is_streaming": streams, "body": body.to_string(),
            "headers": {"content-type": "application/json"},
        }))
        .await;
        let mut chunks = String::new();
        loop {
            let said = self.said().await;
            match said["type"].as_str() {
                Some("response_chunk") => {
                    assert_eq!(said["request_id"], id, "a stock server closes the link at {said}");
                    chunks.push_str(said["chunk"].as_str().expect("text"));
                }
                Some("response_complete") if said["request_id"] == id => {
                    return answer(&said, Some(chunks).filter(|all| streams && !all.is_empty()));
                }
                Some("response_complete" | "pong" | "models_update") => {}
                _ => panic!("a stock server closes the link at {said}"),
            }
        }
    }

    async fn say(&mut self, message: &Value) {
        let sent = self.socket.send(Message::text(message.to_string()));
        within("sending to the worker", sent).await.expect("the worker is there");
    }

    async fn said(&mut self) -> Value {
        loop {
            let message = within("a message of the worker", self.socket.next()).await;
            match message.expect("the worker is there").expect("a message") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("a stock server closes the link at {other:?}"),
            }
        }
    }
}

/// Once a chunk has been passed on, the final status and everything with it is thrown away.
fn answer(complete: &Value, chunks: Option<String>) -> RelayAnswer {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match chunks {
        Some(body) => RelayAnswer { status: 200, content_type: "text/event-stream".into(), body },
        None => RelayAnswer {
            status: complete["status_code"].as_u64().expect("a status"),
            content_type: text(&complete["headers"]["content-type"]),
            body: text(&complete["body"]),
        },
    }
}
