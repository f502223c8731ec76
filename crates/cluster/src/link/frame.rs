//! The frames of a link between two Warrens. Each is one tag byte and its fields, little-endian.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use wire::Utf8Bytes;

use crate::circuit::end::Piece;

/// The longest piece of a circuit's frame or of a carried message, in bytes. Circuits and carried
/// links take turns on a link with pieces of this size. With its head, a piece fits into one sealed
/// record.
pub(crate) const PIECE: usize = 60 * 1024;

mod tag {
    pub(super) const CONTROL: u8 = 0;
    pub(super) const PIECE: u8 = 1;
    pub(super) const ACK: u8 = 2;
    pub(super) const REPLICA: u8 = 3;
    pub(super) const CARRIED: u8 = 4;
}

mod flag {
    pub(super) const TO_OPENER: u8 = 1;
    pub(super) const TEXT: u8 = 2;
    pub(super) const MORE: u8 = 4;
}

/// A circuit or a carried link, as the frames of a link name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Channel {
    /// Its number, given by the member that opened it.
    pub(crate) number: u32,
    /// Whether the frame goes to that member.
    pub(crate) to_opener: bool,
}

/// A frame between two Warrens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LinkFrame {
    /// A message in JSON.
    Control(Utf8Bytes),
    /// A piece of a circuit.
    Piece(Channel, Piece),
    /// All pieces of a circuit below this number were taken.
    Ack(Channel, u64),
    /// A message of the replica.
    Replica(Bytes),
    /// A frame of a carried link. It belongs to a link between two other members, or to one that
    /// ends at the receiver.
    Carried(Bytes),
}

/// A frame that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame that is cut off, or of an unknown form")]
pub(crate) struct BadFrame;

impl LinkFrame {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(32 + self.payload().len());
        match self {
            Self::Control(_) => out.put_u8(tag::CONTROL),
            Self::Replica(_) => out.put_u8(tag::REPLICA),
            Self::Carried(_) => out.put_u8(tag::CARRIED),
            Self::Piece(channel, piece) => {
                let text = if piece.is_text { flag::TEXT } else { 0 };
                let more = if piece.more { flag::MORE } else { 0 };
                put_channel(&mut out, tag::PIECE, *channel, text | more);
                out.put_u64_le(piece.number);
            }
            Self::Ack(channel, number) => {
                put_channel(&mut out, tag::ACK, *channel, 0);
                out.put_u64_le(*number);
            }
        }
        out.extend_from_slice(self.payload());
        out.freeze()
    }

    pub(crate) fn decode(mut bytes: Bytes) -> Result<Self, BadFrame> {
        match bytes.try_get_u8().map_err(|_| BadFrame)? {
            tag::CONTROL => Utf8Bytes::try_from(bytes).map(Self::Control).map_err(|_| BadFrame),
            tag::REPLICA => Ok(Self::Replica(bytes)),
            tag::CARRIED => Ok(Self::Carried(bytes)),
            tag::PIECE => {
                let (channel, flags) = channel(&mut bytes)?;
                let number = bytes.try_get_u64_le().map_err(|_| BadFrame)?;
                let (is_text, more) = (flags & flag::TEXT != 0, flags & flag::MORE != 0);
                match bytes.len() > PIECE {
                    true => Err(BadFrame),
                    false => Ok(Self::Piece(channel, Piece { number, is_text, more, bytes })),
                }
            }
            tag::ACK => {
                let (channel, _) = channel(&mut bytes)?;
                let number = bytes.try_get_u64_le().map_err(|_| BadFrame)?;
                Ok(Self::Ack(channel, number))
            }
            _ => Err(BadFrame),
        }
    }

    fn payload(&self) -> &[u8] {
        match self {
            Self::Control(text) => text.as_bytes(),
            Self::Piece(_, piece) => &piece.bytes,
            Self::Ack(..) => &[],
            Self::Replica(bytes) | Self::Carried(bytes) => bytes,
        }
    }
}

fn put_channel(out: &mut BytesMut, tag: u8, channel: Channel, flags: u8) {
    out.put_u8(tag);
    out.put_u32_le(channel.number);
    out.put_u8(flags | if channel.to_opener { flag::TO_OPENER } else { 0 });
}

fn channel(bytes: &mut Bytes) -> Result<(Channel, u8), BadFrame> {
    let number = bytes.try_get_u32_le().map_err(|_| BadFrame)?;
    let flags = bytes.try_get_u8().map_err(|_| BadFrame)?;
    Ok((Channel { number, to_opener: flags & flag::TO_OPENER != 0 }, flags))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames() -> impl Strategy<Value = LinkFrame> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..64).prop_map(Bytes::from);
        let channel = || {
            (any::<u32>(), any::<bool>())
                .prop_map(|(number, to_opener)| Channel { number, to_opener })
        };
        let piece = (any::<u64>(), any::<bool>(), any::<bool>(), bytes())
            .prop_map(|(number, is_text, more, bytes)| Piece { number, is_text, more, bytes });
        prop_oneof![
            ".{0,40}".prop_map(|text| LinkFrame::Control(text.into())),
            (channel(), piece).prop_map(|(channel, piece)| LinkFrame::Piece(channel, piece)),
            (channel(), any::<u64>()).prop_map(|(channel, number)| LinkFrame::Ack(channel, number)),
            bytes().prop_map(LinkFrame::Replica),
            bytes().prop_map(LinkFrame::Carried),
        ]
    }

    proptest! {
        #[test]
        fn a_frame_is_read_as_it_was_written(frame in frames()) {
            prop_assert_eq!(LinkFrame::decode(frame.encode()), Ok(frame));
        }

        #[test]
        fn no_bytes_break_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _read_or_refused = LinkFrame::decode(Bytes::from(bytes));
        }
    }

    #[test]
    fn a_piece_over_its_bound_is_refused() {
        let bytes = Bytes::from(vec![0; PIECE + 1]);
        let piece = Piece { number: 0, is_text: false, more: false, bytes };
        let channel = Channel { number: 1, to_opener: false };
        assert_eq!(LinkFrame::decode(LinkFrame::Piece(channel, piece).encode()), Err(BadFrame));
    }
}
