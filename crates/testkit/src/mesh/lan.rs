//! A TCP connection on which a test says whatever it likes.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

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
        Self::on(stream.expect("the listener takes connections"))
    }

    fn on(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a TCP connection");
        Self { stream, device: uuid() }
    }

    /// Says hello, wrapped, as a stock peer with these models; a hash goes with it if there is one.
    pub async fn hello(&mut self, models: &[&str], hash: Option<&str>) {
        let body = greeting(&self.device, models, hash);
        self.say(&wrapped("hello", &body)).await;
    }

    /// Connects, says hello and takes the answer, which it returns.
    pub async fn greeted(address: SocketAddr, models: &[&str]) -> (Self, Value) {
        let mut peer = Self::dial(address).await;
        peer.hello(models, None).await;
        let ack = peer.expect("helloAck").await;
        (peer, ack)
    }

    pub async fn say(&mut self, message: &Value) {
        self.frame(message.to_string().as_bytes()).await;
    }

    pub async fn frame(&mut self, bytes: &[u8]) {
        // The other end may have closed, which is what some tests are about.
        let _gone = write_frame(&mut self.stream, bytes).await;
    }

    /// Writes these bytes, of whatever they are a part.
    pub async fn bytes(&mut self, bytes: &[u8]) {
        let _gone = self.stream.write_all(bytes).await;
    }

    /// Announces a frame of `length` bytes and sends none of them.
    pub async fn announce(&mut self, length: u32) {
        self.bytes(&length.to_be_bytes()).await;
    }

    /// The next frame; `None` when the other end has closed.
    pub async fn hear_bytes(&mut self) -> Option<Vec<u8>> {
        within("a frame", read_frame(&mut self.stream)).await.ok()
    }

    pub async fn hear(&mut self) -> Option<Value> {
        let frame = self.hear_bytes().await?;
        Some(serde_json::from_slice(&frame).unwrap_or_else(|error| panic!("no JSON: {error}")))
    }

    /// The next message of this kind, without its envelope; others are passed over.
    pub async fn expect(&mut self, kind: &str) -> Value {
        loop {
            let message = self.hear().await.unwrap_or_else(|| panic!("closed before {kind}"));
            match either(&message) {
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

    /// Reads `length` bytes without regard to frames; `None` when there are fewer.
    pub async fn read(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        within("bytes", self.stream.read_exact(&mut bytes)).await.ok().map(|_| bytes)
    }

    /// Ends its own side, and goes on reading.
    pub async fn shut(&mut self) {
        let _gone = self.stream.shutdown().await;
    }
}

fn greeting(device: &str, models: &[&str], hash: Option<&str>) -> Value {
    let models: Vec<String> = models.iter().map(|&model| model.to_owned()).collect();
    let mut body = serde_json::json!({
        "deviceInfo": facts::device(device, "Stock", &facts::hardware(), &models),
        "loadedModels": models, "protocolVersion": 1,
    });
    if let Some(hash) = hash {
        body["clusterPasscodeHash"] = hash.into();
    }
    body
}
