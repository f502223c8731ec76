//! The way to a connection, for the tasks of the others.

use std::sync::Arc;

use tokio::sync::{Mutex, oneshot};
use wire::{Outbox, OutboxClosed, Utf8Bytes};

use crate::switchboard::Connection;

/// With which code and reason a connection is to be closed.
pub(crate) type Goodbye = (u16, &'static str);

/// The way to a connection.
#[derive(Debug)]
pub(crate) struct Port {
    outbox: Outbox,
    /// Those who wait for room take turns: otherwise all of them would send at once when there is
    /// some, and one of them might never get any.
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

    /// Sends a message of the relay's own. To a link that is gone nothing need be sent.
    pub(crate) fn push(&self, text: Utf8Bytes) {
        let _ = self.outbox.push(wire::Frame::Text(text));
    }

    pub(crate) fn delivery(&self, to: Connection, text: Utf8Bytes) -> Delivery {
        Delivery { to, outbox: self.outbox.clone(), turn: Arc::clone(&self.turn), text }
    }

    /// Has its task close it. One that has ended already is closed.
    pub(crate) fn close(self, goodbye: Goodbye) {
        let _ = self.goodbye.send(goodbye);
    }
}

impl Delivery {
    /// Sends it once there is room.
    pub(crate) async fn send(self) -> Result<(), OutboxClosed> {
        let _turn = self.turn.lock().await;
        self.outbox.send(wire::Frame::Text(self.text)).await
    }
}
