//! BLAKE3 hash trees with leaves of 1 MiB.
//!
//! BLAKE3 hashes a file as a binary tree. Its nodes at the height of 1 MiB, each the chaining value of
//! one *piece*, merge to the file's ordinary BLAKE3 hash. Who knows that hash can therefore check the
//! list of chaining values, and with the list each piece on its own, in any order, from anybody.

use std::{
    io::{self, Read},
    ops::ControlFlow,
};

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// How long a piece is, in bytes; the last of a file may be shorter.
pub const PIECE: u64 = 1 << 20;

/// A BLAKE3 hash, or a chaining value.
pub type Value = [u8; 32];

/// How many pieces a file of this size has; an empty one has none.
pub fn pieces(size: u64) -> u64 {
    size.div_ceil(PIECE)
}

/// How long a piece of a file of this size is, in bytes; 0 for one past the end.
pub fn piece_len(size: u64, piece: u64) -> u64 {
    piece.checked_mul(PIECE).map_or(0, |start| size.saturating_sub(start).min(PIECE))
}

/// The hash tree of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    size: u64,
    /// One for each piece. Where there is one piece only, it is the root itself: BLAKE3 finishes the
    /// root of a tree in another way than its other nodes.
    values: Vec<Value>,
    root: Value,
}

impl Tree {
    /// Hashes what is read until its end. `on_progress` is told after each piece how many bytes were
    /// hashed so far, and may break it off.
    ///
    /// # Errors
    ///
    /// The error of reading; [`io::ErrorKind::Interrupted`] when it was broken off.
    pub fn of(
        mut reader: impl Read,
        mut on_progress: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<Self> {
        let mut builder = TreeBuilder::default();
        let mut piece = vec![0; PIECE as usize];
        loop {
            let length = read_full(&mut reader, &mut piece)?;
            builder.update(&piece[..length]);
            if length < piece.len() {
                return Ok(builder.finish());
            }
            if on_progress(builder.size).is_break() {
                return Err(io::Error::new(io::ErrorKind::Interrupted, "hashing was broken off"));
            }
        }
    }

    /// A tree as somebody else tells it: `None` unless there is a value for each piece, and they merge
    /// to the root.
    pub fn from_parts(size: u64, values: Vec<Value>, root: Value) -> Option<Self> {
        let fits = u64::try_from(values.len()) == Ok(pieces(size)) && merge(&values) == root;
        fits.then_some(Self { size, values, root })
    }

    /// The same from the values one after another in bytes, as they travel.
    pub fn from_bytes(size: u64, values: &[u8], root: Value) -> Option<Self> {
        let (values, rest) = values.as_chunks::<32>();
        if rest.is_empty() { Self::from_parts(size, values.to_vec(), root) } else { None }
    }

    /// The tree of a file of at most one piece, which follows from its hash. `None` for longer files.
    pub fn of_one_piece(size: u64, root: Value) -> Option<Self> {
        let values = if size == 0 { Vec::new() } else { vec![root] };
        Self::from_parts(size, values, root)
    }

    /// How long the file is, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The chaining values of its pieces, in order.
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The same in bytes, as they travel.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.values.as_flattened().to_vec()
    }

    /// The file's BLAKE3 hash.
    pub fn root(&self) -> Value {
        self.root
    }

    /// Whether these bytes are that piece of the file, whole.
    pub fn check(&self, piece: u64, bytes: &[u8]) -> bool {
        let value = usize::try_from(piece).ok().and_then(|piece| self.values.get(piece));
        let Some(value) = value else { return false };
        bytes.len() as u64 == piece_len(self.size, piece) && *value == self.value_of(piece, bytes)
    }

    fn value_of(&self, piece: u64, bytes: &[u8]) -> Value {
        if self.size <= PIECE {
            return *blake3::hash(bytes).as_bytes();
        }
        blake3::Hasher::new().set_input_offset(piece * PIECE).update(bytes).finalize_non_root()
    }
}

/// Makes a tree of bytes that come in any portions, in order.
#[derive(Debug, Default)]
pub struct TreeBuilder {
    size: u64,
    values: Vec<Value>,
    /// Of the piece that is not whole yet. The first piece is hashed as if it were the only one.
    open: blake3::Hasher,
    /// How much of it is there, in bytes.
    filled: u64,
}

impl TreeBuilder {
    /// Goes on with these bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.filled == PIECE {
                self.close();
            }
            let room = (PIECE - self.filled).min(bytes.len() as u64);
            // At most a piece: it fits.
            let (now, rest) = bytes.split_at(room as usize);
            self.open.update(now);
            (self.filled, self.size, bytes) = (self.filled + room, self.size + room, rest);
        }
    }

    /// How many bytes there were, until now.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The tree of all of them.
    pub fn finish(mut self) -> Tree {
        if self.values.is_empty() {
            let root = *self.open.finalize().as_bytes();
            let values = if self.size == 0 { Vec::new() } else { vec![root] };
            return Tree { size: self.size, values, root };
        }
        self.values.push(self.open.finalize_non_root());
        let root = merge(&self.values);
        Tree { size: self.size, values: self.values, root }
    }

    fn close(&mut self) {
        self.values.push(self.open.finalize_non_root());
        // A new hasher: one that is reset keeps its starting offset.
        self.open = blake3::Hasher::new();
        self.open.set_input_offset(self.size);
        self.filled = 0;
    }
}

/// The root above these pieces.
fn merge(values: &[Value]) -> Value {
    match values {
        [] => *blake3::hash(b"").as_bytes(),
        [root] => *root,
        _ => {
            let (left, right) = halves(values);
            *merge_subtrees_root(&merge_inner(left), &merge_inner(right), Mode::Hash).as_bytes()
        }
    }
}

/// The chaining value above these pieces. As deep as the tree is: 44 levels for the longest file.
fn merge_inner(values: &[Value]) -> Value {
    match values {
        // Halves of two or more are never empty; this would fit nothing.
        [] => [0; 32],
        [value] => *value,
        _ => {
            let (left, right) = halves(values);
            merge_subtrees_non_root(&merge_inner(left), &merge_inner(right), Mode::Hash)
        }
    }
}

/// The left half is the greatest power of two that leaves something for the right one.
fn halves(values: &[Value]) -> (&[Value], &[Value]) {
    values.split_at(values.len().next_power_of_two() / 2)
}

/// Reads until the buffer is full or nothing more comes; tells how much there is.
fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests;
