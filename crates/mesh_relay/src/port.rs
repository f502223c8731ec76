//! A connection, as the tasks of the other connections have it.

use std::sync::Arc;

use tokio::sync::{Mutex, oneshot};
use wire::{Outbox, OutboxClosed, Utf8Bytes};

use crate::switchboard::Connection;

/// The code and the reason with which a connection is closed.
pub(crate) type Goodbye = (u16, &'static str);

/// A connection, as the tasks of the other connections have it.
#[derive(Debug)]
pub(crate) struct Port {
    outbox: Outbox,
    /// Held by the sender that waits for room, so that one sender tries at a time. The lock is
    /// fair: each sender gets its turn.
    turn: Arc<Mutex<()>>,
    goodbye: oneshot::Sender<Goodbye>,
}

/// A message that waits for room at its receiver.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// Its receiver.
    pub(crate) to: Connection,
    outbox: Outbox,
    turn: Arc<Mutex<()>>,
    text: Utf8Bytes,
}

impl Port {
    pub(crate) fn new(outbox: Outbox) -> (Self, oneshot::Receiver<Goodbye>) {
        let (goodbye, closing) = oneshot::channel();
        (Self { outbox, turn: Arc::default(), goodbye }, closing)
    }

    /// Sends a message of the mesh relay's own. If the link is closed, the message is dropped.
    pub(crate) fn push(&self, text: Utf8Bytes) {
        let _ = self.outbox.push(wire::Frame::Text(text));
    }

    pub(crate) fn delivery(&self, to: Connection, text: Utf8Bytes) -> Delivery {
        Delivery { to, outbox: self.outbox.clone(), turn: Arc::clone(&self.turn), text }
    }

    /// Has the task of the connection close it.
    pub(crate) fn close(self, goodbye: Goodbye) {
        let _ = self.goodbye.send(goodbye);
    }
}

impl Delivery {
    /// Sends the message once there is room.
    pub(crate) async fn send(self) -> Result<(), OutboxClosed> {
        // Held until the message is queued, so that messages of one sender to a receiver stay in
        // order.
        let _turn = self.turn.lock().await;
        self.outbox.send(wire::Frame::Text(self.text)).await
    }
}
