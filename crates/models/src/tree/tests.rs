//! Trees compared with BLAKE3's own hashes.

use super::*;

fn bytes(size: u64) -> Vec<u8> {
    (0..size).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn tree(bytes: &[u8]) -> Tree {
    Tree::of(bytes, |_| ControlFlow::Continue(())).unwrap()
}

const SIZES: [u64; 14] = [
    0,
    1,
    1023,
    1024,
    1025,
    PIECE - 1,
    PIECE,
    PIECE + 1,
    2 * PIECE,
    2 * PIECE + 1,
    3 * PIECE,
    5 * PIECE - 7,
    8 * PIECE,
    17 * PIECE + 5,
];

#[test]
fn the_root_is_the_ordinary_hash_and_each_piece_is_checked_alone() {
    for size in SIZES {
        let bytes = bytes(size);
        let tree = tree(&bytes);
        assert_eq!(tree.root(), *blake3::hash(&bytes).as_bytes(), "{size}");
        assert_eq!((tree.size(), tree.values().len() as u64), (size, pieces(size)));
        for (i, piece) in bytes.chunks(PIECE as usize).enumerate() {
            assert!(tree.check(i as u64, piece), "{size}, {i}");
            assert!(!tree.check(i as u64, &piece[1..]), "a piece that is cut");
            let mut wrong = piece.to_vec();
            wrong[piece.len() / 2] ^= 1;
            assert!(!tree.check(i as u64, &wrong), "a piece with a flipped bit");
            assert!(!tree.check(i as u64 + 1, piece), "a piece in another's place");
        }
        assert!(!tree.check(pieces(size), b""), "nothing is past the end");
    }
}

#[test]
fn a_tree_that_was_sent_is_taken_only_if_it_merges_to_the_root() {
    for size in SIZES {
        let tree = tree(&bytes(size));
        let sent = tree.to_bytes();
        assert_eq!(Tree::from_bytes(size, &sent, tree.root()), Some(tree.clone()));
        assert_eq!(Tree::from_bytes(size + PIECE, &sent, tree.root()), None);
        for i in (0..sent.len()).step_by(31) {
            let mut wrong = sent.clone();
            wrong[i] ^= 0x80;
            assert_eq!(Tree::from_bytes(size, &wrong, tree.root()), None);
        }
        if !sent.is_empty() {
            assert_eq!(Tree::from_bytes(size, &sent[1..], tree.root()), None);
            assert_eq!(Tree::from_bytes(size, &sent[32..], tree.root()), None);
        }
    }
}

#[test]
fn the_tree_of_one_piece_follows_from_the_hash() {
    for size in [0, 1, PIECE] {
        let tree = tree(&bytes(size));
        assert_eq!(Tree::of_one_piece(size, tree.root()), Some(tree));
    }
    assert_eq!(Tree::of_one_piece(PIECE + 1, [1; 32]), None);
    assert_eq!(Tree::of_one_piece(0, [1; 32]), None, "an empty file has one hash only");
}

#[test]
fn portions_make_no_difference() {
    let bytes = bytes(3 * PIECE + 11);
    for portion in [977, 65_536, PIECE as usize, 2 * PIECE as usize + 3] {
        let mut builder = TreeBuilder::default();
        bytes.chunks(portion).for_each(|portion| builder.update(portion));
        assert_eq!(builder.size(), bytes.len() as u64);
        assert_eq!(builder.finish(), tree(&bytes));
    }
}

#[test]
fn hashing_tells_how_far_it_is_and_can_be_broken_off() {
    let bytes = bytes(3 * PIECE);
    let mut progress = Vec::new();
    let broken = Tree::of(&bytes[..], |hashed| {
        progress.push(hashed);
        if hashed == 2 * PIECE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::Interrupted);
    assert_eq!(progress, [PIECE, 2 * PIECE]);
}

#[test]
fn lengths_of_pieces_do_not_overflow() {
    assert_eq!(pieces(u64::MAX), 1 << 44);
    assert_eq!(piece_len(u64::MAX, (1 << 44) - 1), PIECE - 1);
    assert_eq!(piece_len(u64::MAX, u64::MAX), 0);
    assert_eq!(piece_len(10, 0), 10);
}
