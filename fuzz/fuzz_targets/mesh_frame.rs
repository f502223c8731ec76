//! Frames of a LAN link: however the bytes are cut, the same frames come out, and written again they
//! are the same bytes. The first byte of the input says how they are cut, the second the bound.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use protocol::mesh::frame::{TooLong, put, take};

fuzz_target!(|data: &[u8]| {
    let [cut, max, stream @ ..] = data else { return };
    let max = 1 << (max % 25);
    let once = all(stream, stream.len().max(1), max);
    assert_eq!(once, all(stream, usize::from(*cut).max(1), max));
    let (whole, _, _) = once;
    assert!(whole.iter().all(|frame| frame.len() <= max));
    let mut again = BytesMut::new();
    whole.iter().for_each(|frame| put(&mut again, frame));
    assert_eq!(again[..], stream[..again.len()]);
});

/// The frames, what is left from where no frame is complete, and the error that ended it.
fn all(stream: &[u8], cut: usize, max: usize) -> (Vec<Bytes>, usize, Option<TooLong>) {
    let (mut read, mut frames, mut seen) = (BytesMut::new(), Vec::new(), 0);
    for piece in stream.chunks(cut) {
        read.extend_from_slice(piece);
        seen += piece.len();
        loop {
            match take(&mut read, max) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, stream.len() - seen + read.len(), Some(error)),
            }
        }
    }
    (frames, read.len(), None)
}
