//! The beginning of a link: hello and helloAck, and between two Warrens a handshake that seals it.
//!
//! The dialling end sends `hello`, the listening end answers `helloAck`. If both contain `warren`,
//! the dialling end goes on with a frame of one byte, 0x11, and message 1 of Noise IK; with a
//! passcode it is 0x14, and message 1 of IKpsk2. The listening end answers 0x12 and message 2. Both
//! messages contain a hello again, which is now proved. Then both ends send sealed records. The
//! first payload of the dialling end is empty: it proves to the listening end that message 1 was
//! not a recording. A link that is refused ends with a frame that says why ([`farewell`]).
//!
//! - [`connect`], [`accept`]: the dialling and the listening end
//! - [`local`]: this end's keys, rules and hellos
//! - [`failure`]: why no link came about

use std::time::Duration;

use base::NodeId;
use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{Hello, decode},
};
use seal::{Opener, Sealer};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    time::timeout,
};

use crate::{greeting, link::Order, peer::PeerId};

use super::frames::{Broken, Frames, farewell, farewell_reason};

mod accept;
mod connect;
mod failure;
mod local;
#[cfg(test)]
mod tests;

pub(super) use accept::accept;
pub(super) use connect::connect;
pub(super) use failure::Failure;
pub(super) use local::{Call, Local};

/// The time limit for a hello, and again for the rest of the handshake.
pub(super) const GREETED_WITHIN: Duration = Duration::from_secs(10);

/// The longest frame before a link is greeted, in bytes. A hello is a few kilobytes long.
const MAX_GREETING: usize = 256 * 1024;

/// The most other frames that are skipped before a greeting.
const MAX_OTHERS: usize = 16;

/// The time limit for sending the reason of a refusal.
const REFUSED_WITHIN: Duration = Duration::from_secs(1);

/// The first byte of a frame of the handshake.
mod kind {
    pub(super) const FIRST: u8 = 0x11;
    pub(super) const SECOND: u8 = 0x12;
    pub(super) const FIRST_WITH_PASSCODE: u8 = 0x14;
}

/// The result of a greeting: everything that makes a connection a link.
#[derive(Debug)]
pub(super) struct Greeting {
    /// The peer at the other end; proved, if the link is sealed.
    pub(super) peer: PeerId,
    /// Its hello.
    pub(super) hello: Hello,
    /// The form in which it writes messages.
    pub(super) dialect: Dialect,
    /// The place of this link among those to the same peer.
    pub(super) order: Order,
    /// The cipher state, between Warrens.
    pub(super) seals: Option<(Sealer, Opener)>,
}

impl Greeting {
    /// The greeting of a stock peer, in clear text.
    fn plain(hello: Hello, dialect: Dialect) -> Result<Self, Failure> {
        let peer = device(&hello).ok_or(Failure::Nameless)?;
        Ok(Self { peer, hello, dialect, order: Order::default(), seals: None })
    }
}

/// The id that a stock peer claims. It appears in logs and tables, so only letters, digits and hyphens are allowed.
fn device(hello: &Hello) -> Option<PeerId> {
    let id = hello.device_info.id.as_str();
    let sound = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_sound = (1..=64).contains(&id.len()) && id.bytes().all(sound);
    is_sound.then(|| PeerId::Device(id.to_ascii_lowercase()))
}

/// Tells the other end why there will be no link, and closes the connection.
async fn refuse(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    failure: &Failure,
) {
    if let Some(reason) = failure.for_peer() {
        // The peer may no longer read, so this may fail.
        let _ = timeout(REFUSED_WITHIN, frames.send(&farewell(&reason))).await;
    }
    let _ = timeout(REFUSED_WITHIN, frames.writer.shutdown()).await;
    frames.incoming.drain().await;
}

/// A decoded frame of a greeting.
enum GreetingFrame {
    Hello(Box<Hello>, Dialect),
    HelloAck(Box<Hello>, Dialect),
    /// A message of Noise: its kind, and the message.
    Noise(u8, Vec<u8>),
    /// Another frame.
    Other,
}

/// The next frame of a greeting.
async fn next_frame(
    frames: &mut Frames<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
) -> Result<GreetingFrame, Failure> {
    let frame = frames.incoming.next(MAX_GREETING).await?;
    if let Some(reason) = farewell_reason(&frame) {
        return Err(Failure::Refused(reason));
    }
    if let Some((&kind @ (kind::FIRST | kind::SECOND | kind::FIRST_WITH_PASSCODE), message)) =
        frame.split_first()
    {
        return Ok(GreetingFrame::Noise(kind, message.to_vec()));
    }
    Ok(match decode(&frame) {
        Ok(decoded) => match decoded.message {
            ClusterMessage::Hello(hello) => GreetingFrame::Hello(hello, decoded.dialect),
            ClusterMessage::HelloAck(hello) => GreetingFrame::HelloAck(hello, decoded.dialect),
            _ => GreetingFrame::Other,
        },
        Err(_) => GreetingFrame::Other,
    })
}

/// The hello in a handshake's message, and the number of the link among those that its sender has dialled.
fn proved_hello(payload: &[u8], peer: &NodeId) -> Result<(Hello, u64), Failure> {
    let hello = greeting::read(payload, peer)?;
    let dial = hello.warren.as_ref().and_then(|warren| warren.dial);
    Ok((hello, dial.unwrap_or_default()))
}
