//! A connection to a relay.

use std::net::SocketAddr;

use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

use super::key::MeshKey;
use crate::wait::within;

/// Stock relays and nodes take as much.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

pub(super) type Sink = SplitSink<WebSocketStream<TcpStream>, Message>;
pub(super) type Stream = SplitStream<WebSocketStream<TcpStream>>;

/// A WebSocket to a relay, on which a test says whatever it likes. Dropping it ends the connection
/// without a word.
#[derive(Debug)]
pub(super) struct RelaySocket {
    sink: Sink,
    stream: Stream,
}

impl RelaySocket {
    /// Connects as the node of this id, and says nothing.
    pub(super) async fn open(relay: SocketAddr, node: &str) -> Self {
        let stream = within("connecting", TcpStream::connect(relay)).await;
        let stream = stream.expect("the relay takes connections");
        stream.set_nodelay(true).expect("a TCP connection");
        let url = format!("ws://{relay}/ws?node={node}");
        let config = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        let opened = within("the upgrade", client_async_with_config(url, stream, Some(config)));
        let (socket, _) = opened.await.expect("the relay takes nodes");
        let (sink, stream) = socket.split();
        Self { sink, stream }
    }

    pub(super) async fn say(&mut self, message: &Value) {
        self.text(&message.to_string()).await;
    }

    pub(super) async fn text(&mut self, text: &str) {
        // The relay may have gone.
        let _gone = self.sink.send(Message::text(text)).await;
    }

    pub(super) async fn hear(&mut self) -> Option<Value> {
        within("a message of the relay", next(&mut self.stream)).await
    }

    /// The next message of this kind, without its envelope; others are passed over.
    pub(super) async fn expect(&mut self, kind: &str) -> Value {
        loop {
            let mut message = self.hear().await.unwrap_or_else(|| panic!("closed before {kind}"));
            if let Some(body) = message.get_mut(kind) {
                return body.take();
            }
        }
    }

    /// Waits for a message of each of these kinds, in any order. Other messages are skipped.
    pub(super) async fn expect_all(&mut self, kinds: &[&str]) {
        let mut missing = kinds.to_vec();
        while !missing.is_empty() {
            let message = self.hear().await.unwrap_or_else(|| panic!("closed before {missing:?}"));
            missing.retain(|kind| message.get(*kind).is_none());
        }
    }

    pub(super) fn split(self) -> (Sink, Stream) {
        (self.sink, self.stream)
    }
}

/// The next message that is JSON; `None` when the other end has closed.
pub(super) async fn next(stream: &mut Stream) -> Option<Value> {
    while let Some(Ok(message)) = stream.next().await {
        match message {
            Message::Text(text) => return Some(serde_json::from_str(&text).unwrap_or_default()),
            Message::Binary(bytes) => {
                return Some(serde_json::from_slice(&bytes).unwrap_or_default());
            }
            Message::Close(_) => return None,
            _ => {}
        }
    }
    None
}

/// The registration of a stock node, with its constant signature.
pub(super) fn registration(key: &MeshKey, name: &str, capabilities: &Value) -> Value {
    let id = key.id();
    json!({"register": {
        "capabilities": capabilities, "displayName": name, "nodeID": id, "publicKey": id,
        "signature": key.sign(&id),
    }})
}

pub(super) fn forwarded(kind: &str, from: &str, to: &str, session: &str) -> Value {
    json!({kind: {"fromNodeID": from, "sessionID": session, "toNodeID": to}})
}

pub(super) fn data(from: &str, to: &str, session: &str, bytes: &[u8]) -> Value {
    let data = BASE64_STANDARD.encode(bytes);
    json!({"relayData": {"data": data, "fromNodeID": from, "sessionID": session, "toNodeID": to}})
}

/// The message in `relayData`, as stock nodes read it: base64, JSON as text, or numbers.
pub(super) fn carried(body: &Value) -> Option<Value> {
    let bytes = match &body["data"] {
        Value::String(text) => {
            BASE64_STANDARD.decode(text).unwrap_or_else(|_| text.clone().into_bytes())
        }
        Value::Array(numbers) => {
            numbers.iter().map(|number| number.as_u64()?.try_into().ok()).collect::<Option<_>>()?
        }
        _ => return None,
    };
    serde_json::from_slice(&bytes).ok()
}
