//! One way to a peer, over the LAN or through a mesh relay.
//!
//! A link has two sides: [`Link`], by which all parts send to the peer, and [`Outgoing`], from
//! which the task that owns the socket takes what it writes. There are three lanes, in order of
//! precedence: small messages, which are queued without waiting; answers; and pieces of models.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{Hello, Piece, encode},
    frame::MAX_FRAME,
};
use tracing::Span;

use self::lanes::{Lanes, Put};
use crate::peer::{Peer, PeerId};

mod lanes;

pub(crate) use lanes::{Outgoing, Payload};

/// Requests up to this size, in bytes, are made and read on the async threads. Larger ones take
/// milliseconds, so they are handled on a blocking thread.
pub(crate) const INLINE_LIMIT: usize = 256 * 1024;

/// The most of a reason why the other end closed that is kept, in bytes.
pub(crate) const MAX_REASON: usize = 300;

/// The connection under a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// TCP, to this address.
    Lan(std::net::SocketAddr),
    /// A relay session at the mesh relay with this host name, which is for people.
    Relay(Arc<str>),
}

/// A greeted link.
pub(crate) struct Link {
    /// The number of this link among all links of this process.
    pub(crate) number: u64,
    /// The peer at its other end. It is proved if the link is sealed.
    pub(crate) peer: PeerId,
    pub(crate) carrier: Carrier,
    /// Whether only the two ends can read it.
    pub(crate) sealed: bool,
    /// The form in which the peer reads messages.
    pub(crate) dialect: Dialect,
    /// Whether the peer is a Warren. Sealed links lead to Warrens only.
    pub(crate) warren: bool,
    /// Whether this end opened it.
    pub(crate) opened_here: bool,
    /// Whether its other end has proved this node's passcode, or is trusted without it. Always true
    /// on the LAN, and when this node has no passcode and the link is sealed.
    pub(crate) proved: bool,
    /// Its place among the links between the same two ends.
    pub(crate) order: Order,
    /// The tracing span of everything that happens on it, so that a log can be searched for one
    /// peer.
    pub(crate) span: Span,
    /// Whether it has been silent for too long to send requests over it.
    degraded: AtomicBool,
    lanes: Arc<Lanes>,
}

/// The place of a link among those between the same two ends. Stock peers give no numbers, so the
/// last of their links counts as the newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Order {
    /// Drawn at random at the start of the program at the other end.
    pub(crate) instance: Option<u64>,
    /// The dialling end's count of the links that it has dialled.
    pub(crate) dial: u64,
}

/// Receives what happens on links. The tasks that read the links call these methods, which must not
/// wait.
pub(crate) trait LinkEvents: Send + Sync + 'static {
    /// A link was greeted. `hello` is the other end's description of itself. It is missing for
    /// relay sessions of stock peers, which begin without one.
    fn opened(&self, link: &Arc<Link>, hello: Option<&Hello>);
    /// A link has ended, and why.
    fn closed(&self, link: &Arc<Link>, why: &str);
    /// A payload came over a link: a message, a piece of a model, or a parcel.
    fn received(&self, link: &Arc<Link>, payload: Bytes);
    /// The state of a peer has changed: a mesh relay lists it or no longer does, or a link to it
    /// has become usable or unusable.
    fn changed(&self, peer: &Arc<Peer>);
}

/// Refuses a message that is longer than a link allows. The message is lost; the link stays open.
fn fitting(bytes: Vec<u8>) -> Result<Vec<u8>, LinkClosed> {
    if bytes.len() <= MAX_FRAME {
        return Ok(bytes);
    }
    tracing::warn!(bytes = bytes.len(), "a message was not sent: no link takes more than 16 MiB");
    Err(LinkClosed)
}

/// The link is closed, or will be in a moment; or the message is longer than any link takes, 16 MiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the link is closed, or the message over 16 MiB")]
pub(crate) struct LinkClosed;

/// Why a peer could not be linked to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoLink(pub(crate) String);

/// The properties of a new link.
pub(crate) struct LinkProperties {
    pub(crate) peer: PeerId,
    pub(crate) carrier: Carrier,
    pub(crate) sealed: bool,
    pub(crate) dialect: Dialect,
    pub(crate) warren: bool,
    pub(crate) opened_here: bool,
    pub(crate) proved: bool,
    pub(crate) order: Order,
}

impl Link {
    /// A link, and the queue that its socket's task takes from.
    pub(crate) fn new(properties: LinkProperties) -> (Arc<Self>, Outgoing) {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let LinkProperties { peer, carrier, sealed, dialect, warren, opened_here, proved, order } =
            properties;
        let lanes = Arc::new(Lanes::default());
        let outgoing = Outgoing::new(Arc::clone(&lanes));
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let span =
            tracing::info_span!(parent: None, "mesh_peer", peer = %peer.short(), link = number);
        let link = Self {
            number,
            span,
            peer,
            carrier,
            sealed,
            dialect,
            warren,
            opened_here,
            proved,
            order,
            degraded: AtomicBool::new(false),
            lanes,
        };
        (Arc::new(link), outgoing)
    }

    /// Queues something small: heartbeats, requests, errors. Does not wait. If too much waits
    /// already, the peer does not read, and the link is closed.
    pub(crate) fn tell(&self, message: &ClusterMessage) -> Result<(), LinkClosed> {
        let bytes = fitting(encode(message, self.dialect))?;
        match self.lanes.put_control(bytes) {
            Put::Done => Ok(()),
            Put::Closed => Err(LinkClosed),
            Put::Full => {
                self.close("it does not read what it is sent");
                Err(LinkClosed)
            }
        }
    }

    /// Queues a part of an answer, once there is room for it. Parts that one task queues are sent
    /// in order.
    pub(crate) async fn say(&self, message: &ClusterMessage) -> Result<(), LinkClosed> {
        let bytes = encode(message, self.dialect);
        self.say_encoded(bytes).await
    }

    /// As [`Link::say`], for a message that is encoded already.
    pub(crate) async fn say_encoded(&self, bytes: Vec<u8>) -> Result<(), LinkClosed> {
        let bytes = fitting(bytes)?;
        self.lanes.put_answer(bytes).await
    }

    /// Queues a slice of a piece, once there is room for it.
    pub(crate) async fn send(&self, piece: Piece) -> Result<(), LinkClosed> {
        self.lanes.put_piece(piece.head().to_vec(), piece.slice).await
    }

    /// As [`Link::send`], for a chunk in the plain form, which is an encoded message.
    pub(crate) async fn send_encoded(&self, bytes: Vec<u8>) -> Result<(), LinkClosed> {
        self.lanes.put_piece(fitting(bytes)?, Bytes::new()).await
    }

    /// Closes the link. Queued small messages are still sent. `why` is for people; if it is called
    /// several times, the first reason counts.
    pub(crate) fn close(&self, why: &str) {
        self.lanes.close(why);
    }

    /// Waits until it is closed. Cancel safe.
    pub(crate) async fn closed(&self) {
        self.lanes.ended().cancelled().await;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lanes.ended().is_cancelled()
    }

    /// Sets whether it has been silent for too long to send requests over it.
    pub(crate) fn set_degraded(&self, is: bool) {
        self.degraded.store(is, Ordering::Relaxed);
    }

    /// Whether requests can go over it: it is open, and has not been silent for too long.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_closed() && !self.degraded.load(Ordering::Relaxed)
    }

    /// Whether it is a relay session that a stock peer opened, which may open several at once.
    pub(crate) fn is_one_of_many(&self) -> bool {
        matches!(self.carrier, Carrier::Relay(_)) && !self.sealed && !self.opened_here
    }

    pub(crate) fn why_closed(&self) -> Option<String> {
        self.lanes.why_closed()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link {self} to {}", self.peer.short())
    }
}

/// The link's number, and where it leads, for logs.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.carrier {
            Carrier::Lan(address) => write!(f, "{} to {address}", self.number),
            Carrier::Relay(host) => write!(f, "{} through {host}", self.number),
        }
    }
}

#[cfg(test)]
mod tests;
