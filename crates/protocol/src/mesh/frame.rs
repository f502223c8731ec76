//! Frames of a LAN link: a length of 4 bytes, most significant first, and that number of bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The longest frame, in bytes.
pub const MAX_FRAME: usize = 16 * 1024 * 1024;

/// How many bytes a length has.
const HEAD: usize = 4;

/// A frame that is too long. Nothing after it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes: at most {max} are taken")]
pub struct TooLong {
    /// Its announced length, in bytes.
    pub length: u32,
    /// The most that is accepted, in bytes.
    pub max: usize,
}

/// Takes the first frame out of the buffer; `None` while it is incomplete. The buffer grows by at
/// most one frame of `max` bytes.
///
/// # Errors
/// [`TooLong`].
pub fn take(read: &mut BytesMut, max: usize) -> Result<Option<Bytes>, TooLong> {
    let Some(head) = read.first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_be_bytes(*head);
    let size = usize::try_from(length).ok().filter(|size| *size <= max);
    let Some(size) = size else { return Err(TooLong { length, max }) };
    if read.len() < HEAD + size {
        // The buffer for a large frame grows as its bytes arrive: an announced length alone
        // reserves no memory.
        return Ok(None);
    }
    read.advance(HEAD);
    Ok(Some(read.split_to(size).freeze()))
}

/// Appends a frame. The caller must not pass more than [`MAX_FRAME`] bytes.
pub fn put(out: &mut BytesMut, frame: &[u8]) {
    debug_assert!(frame.len() <= MAX_FRAME, "{}", frame.len());
    out.reserve(HEAD + frame.len());
    out.put_u32(frame.len() as u32);
    out.put_slice(frame);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_read_as_they_were_written_however_they_are_cut(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..8),
            cut in 1..50usize,
        ) {
            let mut all = BytesMut::new();
            frames.iter().for_each(|frame| put(&mut all, frame));
            let (mut read, mut got) = (BytesMut::new(), Vec::new());
            for piece in all.chunks(cut) {
                read.extend_from_slice(piece);
                while let Some(frame) = take(&mut read, MAX_FRAME).unwrap() {
                    got.push(frame.to_vec());
                }
            }
            prop_assert_eq!(got, frames);
            prop_assert!(read.is_empty());
        }
    }

    #[test]
    fn a_length_over_the_bound_is_refused_before_anything_is_kept_for_it() {
        let mut read = BytesMut::from(&[0xff; 4][..]);
        assert_eq!(take(&mut read, 10), Err(TooLong { length: u32::MAX, max: 10 }));
        let mut read = BytesMut::from(&[0, 0, 0, 10][..]);
        assert_eq!(take(&mut read, 10), Ok(None));
    }
}
