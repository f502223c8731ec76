//! A TCP connection on which a test says whatever it likes.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::{
    facts,
    wire::{either, read_frame, uuid, wrapped, write_frame},
};
use crate::wait::within;

/// One end of a LAN link. It enforces no rules: the test says what it sends.
#[derive(Debug)]
pub struct LanPeer {
    stream: TcpStream,
    pub device: String,
}

impl LanPeer {
    pub async fn dial(address: SocketAddr) -> Self {
        let stream = within("connecting", TcpStream::connect(address)).await;
        let stream = stream.expect("the listener takes connections");
        stream.set_nodelay(true).expect("a TCP connection");
        Self { stream, device: uuid() }
    }

    /// Says hello, wrapped, as a stock peer without models.
    pub async fn hello(&mut self) {
        let device = facts::device(&self.device, "Stock", &facts::hardware(), &[]);
        let body = json!({"deviceInfo": device, "loadedModels": [], "protocolVersion": 1});
        self.say(&wrapped("hello", &body)).await;
    }

    /// Connects, says hello and takes the answer.
    pub async fn greeted(address: SocketAddr) -> Self {
        let mut peer = Self::dial(address).await;
        peer.hello().await;
        peer.expect("helloAck").await;
        peer
    }

    pub async fn say(&mut self, message: &Value) {
        // The other end may have closed, which is what some tests are about.
        let _gone = write_frame(&mut self.stream, message.to_string().as_bytes()).await;
    }

    /// The next frame; `None` when the other end has closed.
    pub async fn hear_bytes(&mut self) -> Option<Vec<u8>> {
        within("a frame", read_frame(&mut self.stream)).await.ok()
    }

    /// The next message of this kind, without its envelope; others are passed over.
    pub async fn expect(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.hear_bytes().await.unwrap_or_else(|| panic!("closed before {kind}"));
            match either(&serde_json::from_slice(&frame).expect("JSON")) {
                Some((name, body)) if name == kind => return body,
                _ => {}
            }
        }
    }

    /// Waits until the other end has closed, and returns the messages that came before it did; null is
    /// what was no JSON.
    pub async fn closed(&mut self) -> Vec<Value> {
        let mut last = Vec::new();
        while let Some(frame) = self.hear_bytes().await {
            last.push(serde_json::from_slice(&frame).unwrap_or_default());
        }
        last
    }
}
