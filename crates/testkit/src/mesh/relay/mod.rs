//! A relay in the hands of a test, as stock ones are.
//!
//! It verifies nothing and believes every sender; the last who registers an id has it; it forwards word
//! for word what anybody says to anybody; it tells everybody of every registration, and honours no
//! filter. Its WebSocket server agrees to the first subprotocol that it is offered, whatever it is.
//! Data that does not fit into its own buffer for a slow receiver is lost silently.
//!
//! - `state`: the registered nodes, and the messages to each

mod state;

use std::{net::SocketAddr, sync::Arc};

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
};
use tokio_tungstenite::{
    accept_hdr_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

pub use self::state::Forwarded;
use self::state::RelayState;
use crate::{
    sockets::{Task, accept, agree, any_port, listen, stop},
    wait::{DEADLINE, eventually},
};

/// Messages for one receiver; more are lost.
const MAX_WAITING: usize = 10_000;

/// A longer message ends its sender's connection.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A relay on a port of its own. Dropping it resets every connection.
#[derive(Debug)]
pub struct FakeStockRelay {
    address: SocketAddr,
    state: Arc<RelayState>,
    mode: watch::Sender<Mode>,
    accepting: Task,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Running,
    /// It reads nothing, says nothing and answers no ping.
    Frozen,
}

impl FakeStockRelay {
    pub async fn start() -> Self {
        Self::start_at(any_port()).await
    }

    /// A relay at a given address, such as that of one that was stopped.
    pub async fn start_at(address: SocketAddr) -> Self {
        let (listener, address) = listen(address).await;
        let state = Arc::new(RelayState::default());
        let (mode, watched) = watch::channel(Mode::Running);
        let own = Arc::clone(&state);
        let accepting =
            accept(listener, move |stream| connection(stream, Arc::clone(&own), watched.clone()));
        Self { address, state, mode, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address)
    }

    /// Sends this to a registered node, under any sender's name.
    pub fn say_to(&self, node: &str, message: &Value) {
        self.state.say_to(node, message);
    }

    pub fn forwarded(&self) -> Vec<Forwarded> {
        self.state.forwarded()
    }

    /// Its knowledge of a node, in the form of its answers to discover.
    pub fn knows(&self, node: &str) -> Option<Value> {
        self.state.knows(node)
    }

    pub fn registrations(&self) -> usize {
        self.state.registrations()
    }

    pub fn registration(&self, node: &str) -> Option<Value> {
        self.state.registration(node)
    }

    pub async fn has(&self, node: &str) {
        let has = async || self.knows(node).is_some();
        eventually("a node at the relay", DEADLINE, has).await;
    }

    pub async fn lacks(&self, node: &str) {
        let lacks = async || self.knows(node).is_none();
        eventually("the end of a node at the relay", DEADLINE, lacks).await;
    }

    /// Stands still from now on: connections stay, nothing is read or said.
    pub fn freeze(&self) {
        self.mode.send_replace(Mode::Frozen);
    }

    pub fn thaw(&self) {
        self.mode.send_replace(Mode::Running);
    }

    /// Ends it: when this returns, its port is free and every connection is reset.
    pub async fn stop(self) {
        stop(self.accepting).await;
    }
}

async fn connection(stream: TcpStream, state: Arc<RelayState>, mut mode: watch::Receiver<Mode>) {
    // It may be gone already.
    let _gone = stream.set_nodelay(true);
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let accepted = accept_hdr_async_with_config(stream, agree, Some(config)).await;
    let Ok(mut socket) = accepted else { return };
    let (out, mut waiting) = mpsc::channel(MAX_WAITING);
    let mut connection = state.connection(out);
    loop {
        if mode.wait_for(|mode| *mode == Mode::Running).await.is_err() {
            break;
        }
        tokio::select! {
            said = socket.next() => match said {
                Some(Ok(Message::Text(text))) => state.take(&mut connection, text.as_bytes()),
                Some(Ok(Message::Binary(bytes))) => state.take(&mut connection, &bytes),
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
            Some(message) = waiting.recv() => {
                let last = message.is_close();
                if socket.send(message).await.is_err() || last {
                    break;
                }
            }
            _ = mode.changed() => {}
        }
    }
    state.leave(&connection);
}
