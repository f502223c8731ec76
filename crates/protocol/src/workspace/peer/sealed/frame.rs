//! A frame of a sealed link: one byte that says its kind, a channel (u32, little-endian), then its
//! content.
//!
//! | Kind | Content |
//! | --- | --- |
//! | 0 message | JSON text |
//! | 1 stream | flags, then a part of a frame for a guest as its client gets it |
//! | 2 long message | flags, then a part of JSON text |
//! | 3 replica | a message of the replica |
//! | 4 credit | 1 for a stream or 2 for a long message, then a number of bytes (u32, little-endian) |
//! | 5 carried | how often it may still be passed on, the length of an id and the id of its receiver, the same of its sender, then bytes of their link |
//!
//! Flags: 1 for text, 2 when more of it follows. The channel is 0 where it has no meaning.

use bytes::{Buf, BufMut, Bytes};

use crate::workspace::{
    limits::{CARRIED_MAX, CARRIERS_MAX, FRAGMENT_MAX, REPLICA_MAX, SEALED_MESSAGE_MAX},
    peer::lenient::is_node,
};

/// A frame between two Warrens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedFrame {
    /// A message in JSON, [`SEALED_MESSAGE_MAX`] bytes at most.
    Message(String),
    /// A part of what a guest gets from its stream, in the stream's order.
    Stream(Fragment),
    /// A part of a message in JSON that is longer than [`SEALED_MESSAGE_MAX`].
    Long(Fragment),
    /// A message of the replica.
    Replica(Bytes),
    /// The sender has taken this many bytes of a channel and can take as many more.
    Credit {
        /// The channel, as the frames that it is for have it.
        channel: u32,
        /// The kind of those frames.
        of: CreditOf,
        /// How many bytes.
        bytes: u32,
    },
    /// Bytes of a link between two others, or between one other and the receiver.
    Carried(Carried),
}

/// A part of a frame or of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Its stream or long message. The receiver of a stream names it, the sender of a long message.
    pub channel: u32,
    /// Whether the whole is text.
    pub is_text: bool,
    /// Whether more of the whole follows.
    pub more: bool,
    /// The bytes, [`FRAGMENT_MAX`] at most.
    pub bytes: Bytes,
}

/// The frames that credit is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CreditOf {
    /// A stream.
    Stream,
    /// A long message.
    Long,
}

/// Bytes of a link that other members carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carried {
    /// How often it may still be passed on, [`CARRIERS_MAX`] at most.
    pub hops: u8,
    /// The id of the member at the receiving end.
    pub to: String,
    /// The id of the member at the sending end.
    pub from: String,
    /// A message of the handshake or a record.
    pub bytes: Bytes,
}

/// A frame that cannot be read. No variant holds data that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadSealedFrame {
    /// It ends before its content begins.
    #[error("a frame that is cut off")]
    CutOff,
    /// A kind that this version does not know.
    #[error("a frame of the unknown kind {0}")]
    UnknownKind(u8),
    /// Longer than its kind may be.
    #[error("a frame of more than {0} bytes")]
    TooLong(usize),
    /// Text that is not UTF-8, an impossible id, flag or count.
    #[error("a frame with wrong content")]
    Wrong,
}

mod kind {
    pub(super) const MESSAGE: u8 = 0;
    pub(super) const STREAM: u8 = 1;
    pub(super) const LONG: u8 = 2;
    pub(super) const REPLICA: u8 = 3;
    pub(super) const CREDIT: u8 = 4;
    pub(super) const CARRIED: u8 = 5;
}

mod flag {
    pub(super) const TEXT: u8 = 1;
    pub(super) const MORE: u8 = 2;
}

impl SealedFrame {
    /// The frame in two parts, of which the second is content that is not copied.
    pub fn into_parts(self) -> (Vec<u8>, Bytes) {
        match self {
            Self::Message(text) => (head(kind::MESSAGE, 0), text.into()),
            Self::Stream(fragment) => fragment.into_parts(kind::STREAM),
            Self::Long(fragment) => fragment.into_parts(kind::LONG),
            Self::Replica(bytes) => (head(kind::REPLICA, 0), bytes),
            Self::Credit { channel, of, bytes } => (credit(channel, of, bytes), Bytes::new()),
            Self::Carried(carried) => carried.into_parts(),
        }
    }

    /// The whole frame.
    pub fn encode(self) -> Bytes {
        let (mut head, content) = self.into_parts();
        head.extend_from_slice(&content);
        head.into()
    }

    /// Reads a frame; its content shares the frame's memory.
    ///
    /// # Errors
    /// [`BadSealedFrame`].
    pub fn decode(mut frame: Bytes) -> Result<Self, BadSealedFrame> {
        let kind = frame.try_get_u8().map_err(|_| BadSealedFrame::CutOff)?;
        let channel = frame.try_get_u32_le().map_err(|_| BadSealedFrame::CutOff)?;
        match kind {
            kind::MESSAGE => message(within(frame, SEALED_MESSAGE_MAX)?),
            kind::STREAM => Fragment::read(channel, frame).map(Self::Stream),
            kind::LONG => Fragment::read(channel, frame).map(Self::Long),
            kind::REPLICA => within(frame, REPLICA_MAX).map(Self::Replica),
            kind::CREDIT => read_credit(channel, frame),
            kind::CARRIED => Carried::read(frame).map(Self::Carried),
            unknown => Err(BadSealedFrame::UnknownKind(unknown)),
        }
    }
}

impl Fragment {
    fn into_parts(self, kind: u8) -> (Vec<u8>, Bytes) {
        let mut head = head(kind, self.channel);
        let text = if self.is_text { flag::TEXT } else { 0 };
        let more = if self.more { flag::MORE } else { 0 };
        head.push(text | more);
        (head, self.bytes)
    }

    fn read(channel: u32, mut content: Bytes) -> Result<Self, BadSealedFrame> {
        let flags = content.try_get_u8().map_err(|_| BadSealedFrame::CutOff)?;
        if flags & !(flag::TEXT | flag::MORE) != 0 {
            return Err(BadSealedFrame::Wrong);
        }
        let (is_text, more) = (flags & flag::TEXT != 0, flags & flag::MORE != 0);
        Ok(Self { channel, is_text, more, bytes: within(content, FRAGMENT_MAX)? })
    }
}

impl Carried {
    fn into_parts(self) -> (Vec<u8>, Bytes) {
        let mut head = head(kind::CARRIED, 0);
        head.push(self.hops);
        for id in [&self.to, &self.from] {
            // The ids of members have at most 128 bytes.
            head.push(id.len() as u8);
            head.extend_from_slice(id.as_bytes());
        }
        (head, self.bytes)
    }

    fn read(mut content: Bytes) -> Result<Self, BadSealedFrame> {
        let hops = content.try_get_u8().map_err(|_| BadSealedFrame::CutOff)?;
        if hops > CARRIERS_MAX {
            return Err(BadSealedFrame::Wrong);
        }
        let (to, from) = (read_node(&mut content)?, read_node(&mut content)?);
        Ok(Self { hops, to, from, bytes: within(content, CARRIED_MAX)? })
    }
}

fn head(kind: u8, channel: u32) -> Vec<u8> {
    let mut head = Vec::with_capacity(16);
    head.put_u8(kind);
    head.put_u32_le(channel);
    head
}

fn message(bytes: Bytes) -> Result<SealedFrame, BadSealedFrame> {
    let text = String::from_utf8(bytes.into()).map_err(|_| BadSealedFrame::Wrong)?;
    Ok(SealedFrame::Message(text))
}

fn credit(channel: u32, of: CreditOf, bytes: u32) -> Vec<u8> {
    let mut head = head(kind::CREDIT, channel);
    head.put_u8(match of {
        CreditOf::Stream => kind::STREAM,
        CreditOf::Long => kind::LONG,
    });
    head.put_u32_le(bytes);
    head
}

fn read_credit(channel: u32, mut content: Bytes) -> Result<SealedFrame, BadSealedFrame> {
    let of = match content.try_get_u8().map_err(|_| BadSealedFrame::CutOff)? {
        kind::STREAM => CreditOf::Stream,
        kind::LONG => CreditOf::Long,
        _ => return Err(BadSealedFrame::Wrong),
    };
    let bytes = content.try_get_u32_le().map_err(|_| BadSealedFrame::CutOff)?;
    match content.is_empty() {
        true => Ok(SealedFrame::Credit { channel, of, bytes }),
        false => Err(BadSealedFrame::Wrong),
    }
}

fn read_node(content: &mut Bytes) -> Result<String, BadSealedFrame> {
    let length = content.try_get_u8().map_err(|_| BadSealedFrame::CutOff)?.into();
    if content.len() < length {
        return Err(BadSealedFrame::CutOff);
    }
    let id = String::from_utf8(content.split_to(length).into());
    id.ok().filter(|id| is_node(id)).ok_or(BadSealedFrame::Wrong)
}

fn within(content: Bytes, max: usize) -> Result<Bytes, BadSealedFrame> {
    match content.len() > max {
        true => Err(BadSealedFrame::TooLong(max)),
        false => Ok(content),
    }
}
