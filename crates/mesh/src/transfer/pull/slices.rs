//! Puts pieces and hash trees together from their slices. Pure.
//!
//! Only requested slices are accepted, and only in order; a link keeps the order. So no more is
//! held than was requested.

use std::collections::{BTreeMap, HashMap};

use models::{PieceId, plan::WINDOW};
use protocol::mesh::cluster::{Piece, PieceKind};

/// The most pieces and trees that are expected over one link: those in its window, and as many that
/// were requested from other peers meanwhile.
pub(super) const MAX_EXPECTED: usize = 2 * WINDOW;

/// The most room that is reserved in advance, in bytes. It is bounded because a peer chooses the
/// length.
const MAX_ROOM: u32 = 1 << 20;

/// The key of an expected piece or tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The hash tree of a file.
    Tree(u32),
    /// A piece of a file.
    Data(PieceId),
}

/// The outcome for a slice that arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SliceOutcome {
    /// It was not requested, or is out of order, and is dropped.
    Unasked,
    /// More slices have to follow.
    Part,
    /// The piece or tree is complete.
    Whole(Key, Vec<u8>),
}

/// The expected pieces and trees, with the bytes that have come.
#[derive(Debug, Default)]
pub(super) struct Slices {
    links: HashMap<u64, OfLink>,
}

#[derive(Debug, Default)]
struct OfLink {
    parts: BTreeMap<Key, Part>,
    /// The number of requests over the link so far.
    requests: u64,
}

#[derive(Debug)]
struct Part {
    /// The number of its last request.
    request: u64,
    length: u32,
    bytes: Vec<u8>,
}

impl Slices {
    /// Notes that something of this length was requested over a link. If too much is expected, the
    /// oldest request is given up.
    pub(super) fn expect(&mut self, link: u64, key: Key, length: u32) {
        let of_link = self.links.entry(link).or_default();
        of_link.requests += 1;
        let request = of_link.requests;
        if let Some(part) = of_link.parts.get_mut(&key) {
            part.request = request;
            return;
        }
        of_link.parts.insert(key, Part { request, length, bytes: Vec::new() });
        if of_link.parts.len() > MAX_EXPECTED
            && let Some(oldest) = of_link.oldest()
        {
            of_link.parts.remove(&oldest);
        }
    }

    /// Takes in a slice that came over a link.
    pub(super) fn take(&mut self, link: u64, piece: &Piece) -> SliceOutcome {
        let key = match piece.kind {
            PieceKind::Tree => Key::Tree(piece.file),
            PieceKind::Data => Key::Data(PieceId { file: piece.file, piece: piece.piece }),
        };
        let Some(of_link) = self.links.get_mut(&link) else { return SliceOutcome::Unasked };
        let Some(part) = of_link.parts.get_mut(&key) else { return SliceOutcome::Unasked };
        if !part.add(piece) {
            return SliceOutcome::Unasked;
        }
        if part.bytes.len() as u64 != u64::from(part.length) {
            return SliceOutcome::Part;
        }
        let whole = of_link.parts.remove(&key).map(|part| part.bytes).unwrap_or_default();
        SliceOutcome::Whole(key, whole)
    }

    /// Notes that nothing more is expected over this link.
    pub(super) fn forget(&mut self, link: u64) {
        self.links.remove(&link);
    }
}

impl OfLink {
    fn oldest(&self) -> Option<Key> {
        self.parts.iter().min_by_key(|(_, part)| part.request).map(|(key, _)| *key)
    }
}

impl Part {
    /// Adds a slice. Returns `false` if it is not the next one.
    fn add(&mut self, piece: &Piece) -> bool {
        let fits = piece.length == self.length
            && piece.offset as usize == self.bytes.len()
            && !piece.slice.is_empty()
            && piece.slice.len() <= self.length as usize - self.bytes.len();
        if fits {
            if self.bytes.is_empty() {
                self.bytes.reserve_exact(self.length.min(MAX_ROOM) as usize);
            }
            self.bytes.extend_from_slice(&piece.slice);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    const PIECE: PieceId = PieceId { file: 1, piece: 2 };

    fn slice(offset: u32, length: u32, bytes: &'static [u8]) -> Piece {
        Piece {
            kind: PieceKind::Data,
            transfer: [0; 16],
            file: PIECE.file,
            piece: PIECE.piece,
            offset,
            length,
            slice: Bytes::from_static(bytes),
        }
    }

    fn expecting() -> Slices {
        let mut slices = Slices::default();
        slices.expect(7, Key::Data(PIECE), 5);
        slices
    }

    #[test]
    fn slices_in_order_are_put_together() {
        let mut slices = expecting();
        assert_eq!(slices.take(7, &slice(0, 5, b"abc")), SliceOutcome::Part);
        let whole = SliceOutcome::Whole(Key::Data(PIECE), b"abcde".to_vec());
        assert_eq!(slices.take(7, &slice(3, 5, b"de")), whole);
        assert_eq!(slices.take(7, &slice(0, 5, b"abc")), SliceOutcome::Unasked, "it is there");
    }

    #[test]
    fn unrequested_overlapping_or_empty_chunks_are_refused() {
        let mut slices = expecting();
        let tree = Piece { kind: PieceKind::Tree, ..slice(0, 5, b"abc") };
        let other = Piece { piece: 3, ..slice(0, 5, b"abc") };
        for odd in [tree, other, slice(0, 6, b"abc"), slice(1, 5, b"abc"), slice(0, 5, b"")] {
            assert_eq!(slices.take(7, &odd), SliceOutcome::Unasked, "{odd:?}");
        }
        assert_eq!(slices.take(8, &slice(0, 5, b"abc")), SliceOutcome::Unasked, "another link");
        assert_eq!(slices.take(7, &slice(0, 5, b"abc")), SliceOutcome::Part);
        for odd in [slice(0, 5, b"abc"), slice(2, 5, b"cde"), slice(4, 5, b"e")] {
            assert_eq!(slices.take(7, &odd), SliceOutcome::Unasked, "{odd:?}");
        }
        assert_eq!(slices.take(7, &slice(3, 5, b"def")), SliceOutcome::Unasked, "too long");
        assert!(matches!(slices.take(7, &slice(3, 5, b"de")), SliceOutcome::Whole(..)));
    }

    #[test]
    fn expected_pieces_of_a_link_are_bounded_and_the_last_requests_stay() {
        let mut slices = Slices::default();
        let key = |piece| Key::Data(PieceId { file: 0, piece });
        (0..3 * MAX_EXPECTED as u32).for_each(|piece| slices.expect(7, key(piece), 1));
        let parts = &slices.links[&7].parts;
        assert_eq!(parts.len(), MAX_EXPECTED);
        assert!(parts.contains_key(&key(3 * MAX_EXPECTED as u32 - 1)));
        slices.forget(7);
        assert!(slices.links.is_empty());
    }
}
