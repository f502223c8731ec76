//! Pieces of models: what is read lies within its piece, and written again it is the same bytes.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use protocol::mesh::cluster::Piece;

fuzz_target!(|data: &[u8]| {
    let Some(piece) = Piece::decode(Bytes::copy_from_slice(data)) else { return };
    assert!(u64::from(piece.offset) + piece.slice.len() as u64 <= u64::from(piece.length));
    assert_eq!([&piece.head()[..], &piece.slice].concat(), data);
});
