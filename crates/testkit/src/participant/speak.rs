//! The messages of a participant's tunnel, both ways.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::Mutex};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::FakeParticipant;
use crate::{sockets, wait::within};

type Out = Arc<Mutex<SplitSink<WebSocketStream<TcpStream>, Message>>>;

/// Both ways of the tunnel.
pub(super) struct Socket {
    out: Out,
    into: SplitStream<WebSocketStream<TcpStream>>,
}

#[derive(Debug, Clone)]
pub struct TunnelAsk {
    pub id: String,
    pub json: Value,
    pub text: String,
}

impl Socket {
    pub(super) fn new(socket: WebSocketStream<TcpStream>) -> Self {
        let (out, into) = socket.split();
        Self { out: Arc::new(Mutex::new(out)), into }
    }

    pub(super) fn out(&self) -> Out {
        Arc::clone(&self.out)
    }

    pub(super) async fn close(&self) {
        // The server may have closed it first.
        let _gone = self.out.lock().await.close().await;
    }
}

pub(super) async fn ping(out: &Out) -> bool {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let now = u64::try_from(since.as_millis()).expect("before the year 500,000,000");
    let ping = json!({"type": "tunnel.ping", "timestamp": now});
    out.lock().await.send(Message::text(ping.to_string())).await.is_ok()
}

impl FakeParticipant {
    /// The next request of the server; pongs are passed over.
    pub async fn expect_request(&mut self) -> TunnelAsk {
        let (text, json) = self.next_json("a request", |kind| kind != "tunnel.pong").await;
        assert_eq!(json["type"], "tunnel.request", "{json}");
        TunnelAsk { id: json["requestId"].as_str().expect("an id").to_owned(), json, text }
    }

    pub async fn expect_pong(&mut self) -> Value {
        self.next_json("a pong", |kind| kind == "tunnel.pong").await.1
    }

    /// Waits for the server to close: the code and the reason, if it said any. What it says before
    /// that is passed over.
    pub async fn expect_close(&mut self) -> Option<(u16, String)> {
        sockets::closed(&mut self.socket.into).await
    }

    pub async fn start(&mut self, ask: &TunnelAsk, status: u16, content_type: &str) {
        let headers = json!({"content-type": content_type});
        self.say(&json!({
            "type": "tunnel.response.start", "requestId": ask.id, "status": status,
            "headers": headers,
        }))
        .await;
    }

    pub async fn chunk(&mut self, ask: &TunnelAsk, bytes: impl AsRef<[u8]>) {
        let chunk = BASE64_STANDARD.encode(bytes);
        self.say(&json!({"type": "tunnel.response.chunk", "requestId": ask.id, "chunk": chunk}))
            .await;
    }

    pub async fn end(&mut self, ask: &TunnelAsk) {
        self.say(&json!({"type": "tunnel.response.end", "requestId": ask.id})).await;
    }

    /// Says that there is no answer, or not a whole one.
    pub async fn fail(&mut self, ask: &TunnelAsk, message: &str) {
        self.say(&json!({
            "type": "tunnel.response.error", "requestId": ask.id, "stage": "proxy",
            "message": message,
        }))
        .await;
    }

    pub async fn answer(&mut self, ask: &TunnelAsk, status: u16, body: &Value) {
        self.start(ask, status, "application/json").await;
        self.chunk(ask, body.to_string()).await;
        self.end(ask).await;
    }

    pub async fn say(&mut self, message: &Value) {
        self.send(Message::text(message.to_string())).await;
    }

    pub async fn send(&mut self, frame: Message) {
        let mut out = self.socket.out.lock().await;
        within("a frame being sent", out.send(frame)).await.expect("the server is there");
    }

    pub async fn ping(&mut self, timestamp: u64) {
        self.say(&json!({"type": "tunnel.ping", "timestamp": timestamp})).await;
    }

    async fn next_json(&mut self, what: &str, wanted: fn(&str) -> bool) -> (String, Value) {
        loop {
            match within(what, self.socket.into.next()).await {
                Some(Ok(Message::Text(text))) => {
                    let json: Value = serde_json::from_str(text.as_str()).expect("JSON");
                    if wanted(json["type"].as_str().unwrap_or_default()) {
                        return (text.to_string(), json);
                    }
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?} where {what} was expected"),
            }
        }
    }
}
