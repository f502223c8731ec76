//! Messages to fellows: sealed, and given to the connection without waiting.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_nats::Client;
use bytes::Bytes;
use fleet::ServerId;
use futures_util::FutureExt;

use crate::sealing::Sealer;

/// The subject of a message between servers: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message between lender and borrower.
    Slots = 1,
    /// A frame of a stream.
    Stream = 2,
}

impl Kind {
    pub(crate) fn of(byte: u8) -> Option<Self> {
        [Self::Slots, Self::Stream].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// The carrier of messages: NATS, or a test.
pub(crate) trait Carrier: Send + Sync {
    /// Sends a message without waiting. Returns whether it was taken.
    fn publish(&self, subject: String, sealed: Bytes) -> bool;
}

impl Carrier for Client {
    fn publish(&self, subject: String, sealed: Bytes) -> bool {
        // Its queue has room, or the message is lost: nobody here may wait. The runtime's budget for a task would
        // look like a full queue.
        let publishing = tokio::task::unconstrained(Client::publish(self, subject, sealed));
        publishing.now_or_never().is_some_and(|published| published.is_ok())
    }
}

/// The way to fellows. A message that cannot be sent now is lost, as it may be in NATS: those who send notice it.
pub(crate) struct Transport {
    group: String,
    sealer: Sealer,
    /// There once NATS was reached for the first time.
    carrier: OnceLock<Box<dyn Carrier>>,
    is_up: AtomicBool,
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Transport {
    pub(crate) fn new(group: &str, sealer: Sealer) -> Self {
        Self {
            group: group.to_owned(),
            sealer,
            carrier: OnceLock::new(),
            is_up: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    pub(crate) fn set_carrier(&self, carrier: Box<dyn Carrier>) {
        // There is one connection, which is kept for good.
        let _earlier = self.carrier.set(carrier);
    }

    /// NATS is reached from now on, or not any more.
    pub(crate) fn set_up(&self, up: bool) {
        self.is_up.store(up, Ordering::Relaxed);
    }

    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    pub(crate) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// The subject of the messages to a server.
    pub(crate) fn subject(&self, to: ServerId) -> String {
        format!("warren.{}.to.{to}", self.group)
    }

    /// The messages that were sent, and those that could not be.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }

    /// Sends a message of these parts, one after the other.
    pub(crate) fn send(&self, to: ServerId, kind: Kind, parts: [&[u8]; 2]) {
        let given = self.give(to, kind, parts);
        let counter = if given { &self.sent } else { &self.lost };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn give(&self, to: ServerId, kind: Kind, [first, second]: [&[u8]; 2]) -> bool {
        // Without a connection the client would gather messages that are stale when it has one again.
        let Some(carrier) = self.carrier.get().filter(|_| self.is_up()) else { return false };
        let subject = self.subject(to);
        let sealed = self.sealer.seal(&subject, &[&[kind as u8], first, second]);
        carrier.publish(subject, sealed)
    }
}
