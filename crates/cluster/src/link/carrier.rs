//! The transport under a sealed link: whole messages of bytes, both ways and in order.

use bytes::Bytes;
use tokio::time::Instant;
use wire::{Frame, Link, LinkError, Outbox};

use crate::carried::{Through, end::CarriedEnd};

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

/// The transport under a sealed link.
pub(crate) enum Carrier {
    /// A WebSocket of its own.
    Socket(Box<Link>, Outbox),
    /// Links of other members, or the mesh.
    Carried(CarriedEnd),
}

impl Carrier {
    pub(crate) fn new(link: Link, outbox: Outbox) -> Self {
        Self::Socket(Box::new(link), outbox)
    }

    /// Its first carrier; `None` if it leads directly to the other end.
    pub(crate) fn through(&self) -> Option<&Through> {
        match self {
            Self::Socket(..) => None,
            Self::Carried(end) => Some(end.through()),
        }
    }

    /// The outbox. Its bounds say when there is room.
    pub(crate) fn outbox(&self) -> &Outbox {
        match self {
            Self::Socket(_, outbox) => outbox,
            Self::Carried(end) => end.outbox(),
        }
    }

    /// The next message. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Bytes, CarrierEnd> {
        let link = match self {
            Self::Socket(link, _) => link,
            Self::Carried(end) => return end.next().await,
        };
        match link.next().await? {
            Some(Frame::Binary(bytes)) => Ok(bytes),
            Some(Frame::Text(_)) => Err(CarrierEnd::NotSealed),
            None => Err(closed(link)),
        }
    }

    /// Allows longer messages, once the far end is known.
    pub(crate) fn set_max_message(&mut self, bytes: usize) {
        match self {
            Self::Socket(link, _) => link.set_max_message(bytes),
            Self::Carried(end) => end.set_max_message(bytes),
        }
    }

    /// Asks for a sign of life.
    pub(crate) fn ping(&mut self) {
        match self {
            // The same error appears when the link is read next.
            Self::Socket(link, _) => drop(link.ping()),
            Self::Carried(end) => end.ping(),
        }
    }

    /// When bytes last came from the far end.
    pub(crate) fn heard(&self) -> Instant {
        match self {
            Self::Socket(link, _) => link.heard(),
            Self::Carried(end) => end.heard(),
        }
    }

    pub(crate) async fn close(self, code: u16, reason: &str) {
        match self {
            Self::Socket(link, _) => link.close(code, reason).await,
            Self::Carried(end) => end.close(code, reason),
        }
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
