//! Which pieces of a model are there.

use crate::{
    manifest::Manifest,
    plan::PieceId,
    tree::{piece_len, pieces},
};

/// A bit for each piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pieces {
    files: Vec<File>,
    arrived: u64,
    missing: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    size: u64,
    there: Vec<u64>,
}

impl File {
    fn none(size: u64) -> Self {
        // A manifest has at most 2^23 pieces.
        Self { size, there: vec![0; pieces(size).div_ceil(64) as usize] }
    }

    fn pieces(&self) -> u32 {
        u32::try_from(pieces(self.size)).unwrap_or(u32::MAX)
    }
}

impl Pieces {
    /// Nothing of it.
    pub(super) fn none(manifest: &Manifest) -> Self {
        let files = manifest.files().iter().map(|file| File::none(file.size)).collect();
        Self { files, arrived: 0, missing: manifest.pieces() }
    }

    /// Whether it is one of the model's and is missing.
    pub(super) fn wants(&self, piece: PieceId) -> bool {
        self.is_there(piece) == Some(false)
    }

    /// `None` for one that is not of the model.
    fn is_there(&self, PieceId { file, piece }: PieceId) -> Option<bool> {
        let file = self.files.get(file as usize).filter(|file| piece < file.pieces())?;
        Some(file.there.get(piece as usize / 64)? >> (piece % 64) & 1 == 1)
    }

    pub(super) fn set(&mut self, piece: PieceId) {
        if self.wants(piece) {
            self.flip(piece);
            self.missing -= 1;
            self.arrived += self.length(piece);
        }
    }

    pub(super) fn clear(&mut self, piece: PieceId) {
        if self.is_there(piece) == Some(true) {
            self.flip(piece);
            self.missing += 1;
            self.arrived -= self.length(piece);
        }
    }

    /// Nothing of this file is there.
    pub(super) fn clear_file(&mut self, file: u32) {
        let count = self.files.get(file as usize).map_or(0, File::pieces);
        (0..count).for_each(|piece| self.clear(PieceId { file, piece }));
    }

    /// How many bytes are there.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    pub(super) fn missing(&self) -> Vec<PieceId> {
        self.all().filter(|piece| self.wants(*piece)).collect()
    }

    pub(super) fn there(&self) -> impl Iterator<Item = PieceId> {
        self.all().filter(|piece| !self.wants(*piece))
    }

    fn all(&self) -> impl Iterator<Item = PieceId> {
        let pieces = |(number, file): (u32, &File)| {
            (0..file.pieces()).map(move |piece| PieceId { file: number, piece })
        };
        (0..).zip(&self.files).flat_map(pieces)
    }

    fn flip(&mut self, PieceId { file, piece }: PieceId) {
        let file = self.files.get_mut(file as usize);
        let word = file.and_then(|file| file.there.get_mut(piece as usize / 64));
        word.into_iter().for_each(|word| *word ^= 1 << (piece % 64));
    }

    fn length(&self, PieceId { file, piece }: PieceId) -> u64 {
        self.files.get(file as usize).map_or(0, |file| piece_len(file.size, piece.into()))
    }
}
