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
use tokio::{net::TcpStream, sync::mpsc};
use tokio_tungstenite::{
    accept_hdr_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

use self::state::RelayState;
use crate::sockets::{Task, accept, agree, any_port, listen, stop};

/// Messages for one receiver; more are lost.
const MAX_WAITING: usize = 10_000;

/// A longer message ends its sender's connection.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A relay on a port of its own. Dropping it resets every connection.
#[derive(Debug)]
pub struct FakeStockRelay {
    address: SocketAddr,
    state: Arc<RelayState>,
    accepting: Task,
}

impl FakeStockRelay {
    pub async fn start() -> Self {
        Self::start_at(any_port()).await
    }

    /// A relay at a given address, such as that of one that was stopped.
    pub async fn start_at(address: SocketAddr) -> Self {
        let (listener, address) = listen(address).await;
        let state = Arc::new(RelayState::default());
        let own = Arc::clone(&state);
        let accepting = accept(listener, move |stream| connection(stream, Arc::clone(&own)));
        Self { address, state, accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("ws://{}/ws", self.address)
    }

    pub fn registrations(&self) -> usize {
        self.state.registrations()
    }

    /// Ends it: when this returns, its port is free and every connection is reset.
    pub async fn stop(self) {
        stop(self.accepting).await;
    }
}

async fn connection(stream: TcpStream, state: Arc<RelayState>) {
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
        }
    }
    state.leave(&connection);
}
