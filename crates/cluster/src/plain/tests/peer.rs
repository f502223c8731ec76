//! A plain peer, written from the specification alone: JSON over a WebSocket.

use std::{net::SocketAddr, time::Duration};

use http::HeaderMap;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};
use wire::{Dial, Frame, Link, Outbox, Proxies, dial};

use super::TOKEN;
use crate::testing::{Machine, SOON};

/// A plain peer with one link.
pub(super) struct Peer {
    outbox: Outbox,
    received: mpsc::Receiver<Option<Value>>,
    /// The code with which the link was closed.
    pub(super) closed: Option<u16>,
    codes: mpsc::Receiver<u16>,
}

impl Peer {
    /// A link to a member's peer port, without any greeting.
    pub(super) async fn connected(address: SocketAddr) -> Self {
        let url = format!("ws://{address}/peer").parse().unwrap();
        let dialling = Dial {
            url: &url,
            headers: HeaderMap::new(),
            subprotocols: &[],
            proxies: Proxies::none(),
            pin: None,
            deadline: SOON,
        };
        let dialled = dial(dialling).await.unwrap();
        Self::over(dialled.link, dialled.outbox)
    }

    pub(super) fn over(mut link: Link, outbox: Outbox) -> Self {
        let (sender, received) = mpsc::channel(1024);
        let (code, codes) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Ok(Some(frame)) = link.next().await {
                let Frame::Text(text) = frame else { panic!("a binary frame: {frame:?}") };
                let _gone = sender.send(Some(serde_json::from_str(&text).unwrap())).await;
            }
            let _gone = code.send(link.close_reason().map_or(0, |(code, _)| code)).await;
            let _gone = sender.send(None).await;
        });
        Self { outbox, received, closed: None, codes }
    }

    /// A peer that was let in.
    pub(super) async fn greeted(machine: &Machine, node: &str) -> Self {
        let mut peer = Self::connected(machine.address).await;
        peer.send(&hello(node, TOKEN));
        let ack = peer.next().await.unwrap();
        assert_eq!((&ack["type"], &ack["success"]), (&json!("peer_hello_ack"), &json!(true)));
        peer
    }

    pub(super) fn send(&self, message: &Value) {
        self.send_text(message.to_string());
    }

    pub(super) fn send_text(&self, text: String) {
        let _closed = self.outbox.push(text);
    }

    /// The next message; `None` when the link is closed.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let next = timeout(SOON, self.received.recv()).await.expect("nothing comes");
        let next = next.flatten();
        if next.is_none() {
            self.closed = self.codes.try_recv().ok();
        }
        next
    }

    /// Whether a message is here already.
    pub(super) fn has_any(&self) -> bool {
        !self.received.is_empty()
    }

    /// The next message of this type.
    pub(super) async fn until(&mut self, kind: &str) -> Value {
        self.until_it(|message| message["type"] == kind).await
    }

    pub(super) async fn until_it(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.next().await.expect("the link closed");
            if is_it(&message) {
                return message;
            }
        }
    }

    /// Checks that nothing is said but answers to a few requests that have no way.
    pub(super) async fn expect_quiet(&mut self) {
        for round in 0..3 {
            let id = format!("quiet {round}");
            self.send(&json!({"type": "forwarded_request", "request_id": id, "payload": "{}",
                "hops": 0}));
            assert_eq!(self.next().await.unwrap()["request_id"], id);
        }
    }

    /// Waits until the link is closed.
    pub(super) async fn until_closed(&mut self) -> u16 {
        while self.next().await.is_some() {}
        self.closed.unwrap_or_default()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.outbox.close();
    }
}

pub(super) fn hello(node: &str, token: &str) -> Value {
    json!({"type": "peer_hello", "node_id": node, "cluster_token": token, "term": 0,
        "display_name": "a plain peer"})
}

/// A connection whose frames the test writes itself.
pub(super) struct Raw(pub(super) TcpStream);

impl Raw {
    pub(super) async fn connected(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = "GET /peer HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\n\
            upgrade: websocket\r\nsec-websocket-version: 13\r\n\
            sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
        Self(stream)
    }

    /// Announces a frame of this length. `opcode`: 1 for text, 0 to go on; `last` ends the message.
    pub(super) async fn head(&mut self, opcode: u8, last: bool, length: u64) {
        let mut head = vec![opcode | if last { 0x80 } else { 0 }, 0x80 | 127];
        head.extend(length.to_be_bytes());
        head.extend([0; 4]);
        self.0.write_all(&head).await.unwrap();
    }

    pub(super) async fn text(&mut self, text: &str) {
        self.head(1, true, text.len() as u64).await;
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    /// Writes the same bytes until the far end has closed the connection. The bytes that it took.
    pub(super) async fn write_until_closed(&mut self, bytes: &[u8], most: usize) -> usize {
        let mut written = 0;
        while written < most {
            let writing = timeout(SOON, self.0.write(bytes)).await;
            match writing.expect("the far end neither reads nor closes") {
                Ok(count) => written += count,
                Err(_) => break,
            }
        }
        written
    }

    /// Reads until the far end has closed the connection.
    pub(super) async fn read_until_closed(&mut self) {
        let mut buffer = vec![0; 64 * 1024];
        let reading = async { while let Ok(1..) = self.0.read(&mut buffer).await {} };
        timeout(SOON, reading).await.expect("the far end does not close");
    }
}

/// Lets this time pass at once. While the clock stands still it would run ahead of the sockets, so it
/// runs again afterwards.
pub(super) async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
