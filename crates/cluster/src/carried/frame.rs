//! The frames of carried links, inside the frames of the links that carry them. Each is one byte for
//! its kind, its channel, and its fields, little-endian.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::ways::Reach;
use crate::link::frame::{BadFrame, Channel, PIECE};

/// The longest frame in JSON, in bytes.
const MAX_JSON: usize = 512 * 1024;
/// The longest reason for a close, in bytes.
const MAX_REASON: usize = 1024;

mod kind {
    pub(super) const WAYS: u8 = 0;
    pub(super) const OPEN: u8 = 1;
    pub(super) const PIECE: u8 = 2;
    pub(super) const LAST_PIECE: u8 = 3;
    pub(super) const ACK: u8 = 4;
    pub(super) const PING: u8 = 5;
    pub(super) const CLOSED: u8 = 6;
}

/// A frame of tag *carried*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CarriedFrame {
    /// The members that the sender reaches.
    Ways(Reach),
    /// A frame on a carried link.
    On(Channel, Body),
}

/// The body of a frame on a carried link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// The first frame.
    Open(Open),
    /// A piece of a message.
    Piece(Piece),
    /// The receiver has taken this many further bytes.
    Ack(u32),
    /// A sign of life.
    Ping,
    /// The last frame: one end, or a member in between, has closed the link.
    Closed(Closed),
}

/// Opens a link that members carry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    /// The member at its far end.
    pub(crate) to: String,
    /// The member that opens it. Only the handshake proves it.
    pub(crate) from: String,
    /// The members that carry it so far, in order.
    pub(crate) carriers: Vec<String>,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Whether the message goes on in the next piece.
    pub(crate) more: bool,
    pub(crate) bytes: Bytes,
}

/// Why a carried link was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    /// As that of a WebSocket: 1008 if it was refused.
    pub(crate) code: u16,
    /// For people.
    pub(crate) reason: String,
}

impl Closed {
    /// It was refused with these words.
    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self { code: 1008, reason: reason.into() }
    }

    /// It ended.
    pub(crate) fn ended(reason: impl Into<String>) -> Self {
        Self { code: 1000, reason: reason.into() }
    }
}

impl CarriedFrame {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        match self {
            Self::Ways(reach) => {
                out.put_u8(kind::WAYS);
                out.extend_from_slice(&json(reach));
            }
            Self::On(channel, body) => body.put(*channel, &mut out),
        }
        out.freeze()
    }

    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self, BadFrame> {
        let kind = bytes.try_get_u8().map_err(|_| BadFrame)?;
        if kind == kind::WAYS {
            let reach: Reach = read_json(&bytes)?;
            return if reach.is_sound() { Ok(Self::Ways(reach)) } else { Err(BadFrame) };
        }
        let number = bytes.try_get_u32_le().map_err(|_| BadFrame)?;
        let to_opener = bytes.try_get_u8().map_err(|_| BadFrame)? != 0;
        let body = match kind {
            kind::OPEN => Body::Open(read_json(&bytes)?),
            kind::PIECE | kind::LAST_PIECE if bytes.len() <= PIECE => {
                Body::Piece(Piece { more: kind == kind::PIECE, bytes })
            }
            kind::ACK => Body::Ack(bytes.try_get_u32_le().map_err(|_| BadFrame)?),
            kind::PING => Body::Ping,
            kind::CLOSED if bytes.len() <= MAX_REASON + 2 => {
                let code = bytes.try_get_u16_le().map_err(|_| BadFrame)?;
                Body::Closed(Closed { code, reason: String::from_utf8_lossy(&bytes).into_owned() })
            }
            _ => return Err(BadFrame),
        };
        Ok(Self::On(Channel { number, to_opener }, body))
    }
}

impl Body {
    fn put(&self, channel: Channel, out: &mut BytesMut) {
        out.put_u8(self.kind());
        out.put_u32_le(channel.number);
        out.put_u8(u8::from(channel.to_opener));
        match self {
            Self::Open(open) => out.extend_from_slice(&json(open)),
            Self::Piece(piece) => out.extend_from_slice(&piece.bytes),
            Self::Ack(bytes) => out.put_u32_le(*bytes),
            Self::Ping => {}
            Self::Closed(Closed { code, reason }) => {
                out.put_u16_le(*code);
                let end = reason.floor_char_boundary(MAX_REASON);
                out.extend_from_slice(&reason.as_bytes()[..end]);
            }
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Open(_) => kind::OPEN,
            Self::Piece(Piece { more: true, .. }) => kind::PIECE,
            Self::Piece(_) => kind::LAST_PIECE,
            Self::Ack(_) => kind::ACK,
            Self::Ping => kind::PING,
            Self::Closed(_) => kind::CLOSED,
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Text and numbers are always JSON.
    serde_json::to_vec(value).unwrap_or_default()
}

fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, BadFrame> {
    match bytes.len() > MAX_JSON {
        true => Err(BadFrame),
        false => serde_json::from_slice(bytes).map_err(|_| BadFrame),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bodies() -> impl Strategy<Value = Body> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from);
        let names = || prop::collection::vec(".{0,8}", 0..4);
        prop_oneof![
            (".{0,9}", ".{0,9}", names()).prop_map(|(to, from, carriers)| Body::Open(Open {
                to,
                from,
                carriers
            })),
            (any::<bool>(), bytes()).prop_map(|(more, bytes)| Body::Piece(Piece { more, bytes })),
            any::<u32>().prop_map(Body::Ack),
            Just(Body::Ping),
            (any::<u16>(), ".{0,40}")
                .prop_map(|(code, reason)| Body::Closed(Closed { code, reason })),
        ]
    }

    proptest! {
        #[test]
        fn a_frame_is_read_as_it_was_written(
            number in any::<u32>(), to_opener in any::<bool>(), body in bodies(),
        ) {
            let frame = CarriedFrame::On(Channel { number, to_opener }, body);
            prop_assert_eq!(CarriedFrame::decode(frame.encode()), Ok(frame));
        }

        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _read_or_refused = CarriedFrame::decode(Bytes::from(bytes));
        }
    }

    #[test]
    fn what_is_over_its_bound_is_refused() {
        let channel = Channel { number: 1, to_opener: false };
        let long = Piece { more: false, bytes: vec![0; PIECE + 1].into() };
        let long = CarriedFrame::On(channel, Body::Piece(long));
        assert_eq!(CarriedFrame::decode(long.encode()), Err(BadFrame));
        let carriers = vec!["n".repeat(MAX_JSON)];
        let open = Open { to: String::new(), from: String::new(), carriers };
        let open = CarriedFrame::On(channel, Body::Open(open));
        assert_eq!(CarriedFrame::decode(open.encode()), Err(BadFrame));
        let far = Reach([("n".to_owned(), 9)].into());
        assert_eq!(CarriedFrame::decode(CarriedFrame::Ways(far).encode()), Err(BadFrame));
    }
}
