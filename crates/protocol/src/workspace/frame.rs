//! The binary frame that output goes in (specification, "Binary output frame").
//!
//! One byte 0x01, the session's id in 16 bytes, the sequence number in 8 bytes, big-endian, then
//! the payload: UTF-8 text as the terminal or the agent wrote it.

use bytes::{BufMut, Bytes, BytesMut};
use uuid::Uuid;

use super::{client::Output, ids::SessionId};

/// How long the part before the payload is, in bytes.
pub const HEADER: usize = 25;

/// The first byte of a frame of output.
const OUTPUT: u8 = 0x01;

/// A frame of output from the wire. Its payload is UTF-8.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFrame {
    /// The session of the output.
    pub session_id: SessionId,
    /// Its number in the session's log, from 1.
    pub seq: u64,
    /// The bytes.
    pub data: Bytes,
}

/// Why a binary frame is not valid output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// It is shorter than a header.
    #[error("the binary frame has {0} bytes, and its header alone has {HEADER}")]
    Short(usize),
    /// It is not output, or output of another version.
    #[error("the binary frame begins with {0:#04x}, which is unknown; output begins with 0x01")]
    UnknownTag(u8),
    /// The payload is not text.
    #[error("the payload of the output frame is not UTF-8 from byte {0} on")]
    NotUtf8(usize),
}

/// The part of a frame before its payload, for a caller that sends the payload without copying it.
pub fn header(session_id: SessionId, seq: u64) -> [u8; HEADER] {
    let mut header = [OUTPUT; HEADER];
    header[1..17].copy_from_slice(session_id.uuid().as_bytes());
    header[17..].copy_from_slice(&seq.to_be_bytes());
    header
}

/// Encodes a whole frame. The payload must be UTF-8: clients refuse anything else.
pub fn encode(session_id: SessionId, seq: u64, payload: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(HEADER + payload.len());
    frame.put_slice(&header(session_id, seq));
    frame.put_slice(payload);
    frame.freeze()
}

/// The session and the number of a frame of output, for programs that pass it on unread.
pub fn position(frame: &[u8]) -> Option<(SessionId, u64)> {
    let (header, _) = frame.split_first_chunk::<HEADER>()?;
    let (session, seq) = header[1..].split_first_chunk::<16>()?;
    let seq = u64::from_be_bytes(seq.try_into().ok()?);
    (header[0] == OUTPUT).then(|| (SessionId::from_uuid(Uuid::from_bytes(*session)), seq))
}

/// Reads a frame; its payload shares the frame's memory.
///
/// # Errors
/// [`BadFrame`].
pub fn decode(mut frame: Bytes) -> Result<OutputFrame, BadFrame> {
    match frame.first() {
        Some(&tag) if tag != OUTPUT => return Err(BadFrame::UnknownTag(tag)),
        _ => {}
    }
    let &header: &[u8; HEADER] = frame.first_chunk().ok_or(BadFrame::Short(frame.len()))?;
    let data = frame.split_off(HEADER);
    std::str::from_utf8(&data).map_err(|error| BadFrame::NotUtf8(error.valid_up_to()))?;
    let (id, seq) = split(&header);
    Ok(OutputFrame { session_id: SessionId::from_uuid(Uuid::from_bytes(id)), seq, data })
}

fn split(header: &[u8; HEADER]) -> ([u8; 16], u64) {
    let mut id = [0; 16];
    id.copy_from_slice(&header[1..17]);
    let mut seq = [0; 8];
    seq.copy_from_slice(&header[17..]);
    (id, u64::from_be_bytes(seq))
}

impl OutputFrame {
    /// The message of the frame.
    pub fn into_message(self) -> Output {
        let data = String::from_utf8_lossy(&self.data).into_owned();
        Output { session_id: self.session_id, seq: self.seq, data }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: SessionId =
        SessionId::from_uuid(Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10));

    #[test]
    fn a_frame_byte_for_byte() {
        let frame = encode(ID, 42, "é\x1b[m".as_bytes());
        let wire = b"\x01\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\
            \0\0\0\0\0\0\0\x2a\xc3\xa9\x1b[m";
        assert_eq!(frame, wire[..]);
        assert_eq!(header(ID, 42), wire[..HEADER]);
        let read = decode(frame.clone()).unwrap();
        assert_eq!((read.session_id, read.seq), (ID, 42));
        assert_eq!(read.data.as_ptr(), frame[HEADER..].as_ptr());
        assert_eq!(read.into_message(), Output { session_id: ID, seq: 42, data: "é\x1b[m".into() });
    }

    #[test]
    fn every_bad_frame_has_its_name() {
        let whole = encode(ID, 1, b"");
        for length in 0..HEADER {
            assert_eq!(decode(whole.slice(..length)), Err(BadFrame::Short(length)));
        }
        assert_eq!(decode(Bytes::from_static(b"\x02")), Err(BadFrame::UnknownTag(2)));
        assert_eq!(decode(encode(ID, 1, b"ab\xc3")), Err(BadFrame::NotUtf8(2)));
    }

    proptest! {
        #[test]
        fn a_frame_that_was_read_is_written_the_same(bytes: Vec<u8>, bits: u128, seq: u64, text: String) {
            let frame = encode(SessionId::from_random(bits), seq, text.as_bytes());
            let read = decode(frame.clone()).unwrap();
            prop_assert_eq!(encode(read.session_id, read.seq, &read.data), frame);
            let wire = Bytes::from([&[OUTPUT][..], &bytes].concat());
            if let Ok(read) = decode(wire.clone()) {
                prop_assert_eq!(encode(read.session_id, read.seq, &read.data), wire);
            }
        }
    }
}
