//! The transport under a sealed link: whole messages of bytes, both ways and in order.

use bytes::Bytes;
use tokio::time::Instant;
use wire::{Frame, Link, LinkError, Outbox};

/// Why a carrier ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CarrierEnd {
    #[error("{0}")]
    Closed(String),
    /// The far end refused with these words.
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Broken(#[from] LinkError),
    #[error("it sent text where sealed records are due")]
    NotSealed,
}

/// A WebSocket of its own, under a sealed link.
pub(crate) struct Carrier {
    link: Link,
    outbox: Outbox,
}

impl Carrier {
    pub(crate) fn new(link: Link, outbox: Outbox) -> Self {
        Self { link, outbox }
    }

    /// The way out. Its bounds say when there is room.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The next message. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Bytes, CarrierEnd> {
        match self.link.next().await? {
            Some(Frame::Binary(bytes)) => Ok(bytes),
            Some(Frame::Text(_)) => Err(CarrierEnd::NotSealed),
            None => Err(closed(&self.link)),
        }
    }

    /// Takes longer messages, once the far end is known.
    pub(crate) fn set_max_message(&mut self, bytes: usize) {
        self.link.set_max_message(bytes);
    }

    /// Asks for a sign of life.
    pub(crate) fn ping(&mut self) {
        // The error shows again when the link is read.
        let _broken = self.link.ping();
    }

    /// When bytes last came from the far end.
    pub(crate) fn heard(&self) -> Instant {
        self.link.heard()
    }

    pub(crate) async fn close(self, code: u16, reason: &str) {
        self.link.close(code, reason).await;
    }
}

fn closed(link: &Link) -> CarrierEnd {
    match link.close_reason() {
        Some((1008, reason)) if !reason.is_empty() => {
            CarrierEnd::Refused(base::plain::line(&reason))
        }
        Some((_, reason)) if !reason.is_empty() => CarrierEnd::Closed(base::plain::line(&reason)),
        _ => CarrierEnd::Closed("it closed the link".to_owned()),
    }
}
