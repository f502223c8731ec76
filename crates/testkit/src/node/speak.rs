//! The messages of a node, both ways.

use std::{sync::Arc, time::Duration};

use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use serde_json::Value;
use tokio::{net::TcpStream, sync::Mutex};
use tokio_tungstenite::{WebSocketStream, tungstenite::Message};

use super::{FakeNode, NodeTask};
use crate::{sockets, wait::within};

/// How often it says that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Text is sent when there are more characters than this.
const GATHERED: usize = 15;

type Sink = SplitSink<WebSocketStream<TcpStream>, Message>;

/// Both ways of the connection.
#[derive(Debug)]
pub(super) struct Socket {
    out: Arc<Mutex<Sink>>,
    into: SplitStream<WebSocketStream<TcpStream>>,
}

impl FakeNode {
    pub(super) fn on(socket: WebSocketStream<TcpStream>) -> Self {
        let (out, into) = socket.split();
        let out = Arc::new(Mutex::new(out));
        let keep_alive = sockets::spawn(keep_alive(Arc::clone(&out)));
        Self { socket: Socket { out, into }, keep_alive }
    }

    /// The next message of the server, which must be a task.
    pub async fn expect_task(&mut self) -> NodeTask {
        let json = self.expect_json("a task").await;
        assert_eq!(json["state"], 0, "{json}");
        NodeTask { id: json["id"].as_i64().expect("an id"), json }
    }

    /// The next message of the server, which must stop this task.
    pub async fn expect_stop(&mut self, id: i64) {
        let json = self.expect_json("a stop").await;
        assert_eq!(json, serde_json::json!({"id": id, "stop": true}));
    }

    /// Waits for the server to close: the code and the reason, if it said any. What it says before
    /// that is passed over.
    pub async fn expect_close(&mut self) -> Option<(u16, String)> {
        sockets::closed(&mut self.socket.into).await
    }

    /// Answers a task whole, in the pieces that a stock node makes of it.
    pub async fn answer(&mut self, task: &NodeTask, text: &str) {
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(GATHERED + 1) {
            let piece: String = piece.iter().collect();
            self.say(task.id, piece.as_bytes()).await;
        }
        self.finish(task.id).await;
    }

    /// Sends one piece of a task's text, which need not be text.
    pub async fn say(&mut self, id: i64, piece: &[u8]) {
        // Python's `>I`: four bytes, the most significant first.
        let id = u32::try_from(id).expect("four bytes").to_be_bytes();
        self.send(Message::binary([&id, piece].concat())).await;
    }

    pub async fn finish(&mut self, id: i64) {
        self.say(id, b"").await;
    }

    pub async fn send(&mut self, frame: Message) {
        let mut out = self.socket.out.lock().await;
        within("a frame being sent", out.send(frame)).await.expect("the server is there");
    }

    pub fn fall_silent(&self) {
        self.keep_alive.abort();
    }

    async fn expect_json(&mut self, what: &str) -> Value {
        loop {
            match within(what, self.socket.into.next()).await {
                Some(Ok(Message::Text(text))) => {
                    return serde_json::from_str(text.as_str()).expect("JSON");
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?} where {what} was expected"),
            }
        }
    }
}

async fn keep_alive(out: Arc<Mutex<Sink>>) {
    let mut ticks = tokio::time::interval(KEEP_ALIVE);
    loop {
        ticks.tick().await;
        if out.lock().await.send(Message::text("")).await.is_err() {
            return;
        }
    }
}
