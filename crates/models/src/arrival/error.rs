//! Why a model does not arrive.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    manifest::ManifestError,
    name::{FileName, ModelId},
    plan::PieceId,
};

/// Why a model does not arrive.
#[derive(Debug, thiserror::Error)]
pub enum ArrivalError {
    /// Seen before anything was fetched.
    #[error("{needed} bytes are needed in {}, and {free} are free", path.display())]
    NoSpace {
        /// Where.
        path: PathBuf,
        /// In bytes, with what is left to others.
        needed: u64,
        /// In bytes.
        free: u64,
    },
    /// Seen while it was written.
    #[error("the disk of {} is full", path.display())]
    Full {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused something else.
    #[error("cannot write {}", path.display())]
    Disk {
        /// Which file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another transfer, maybe of another process, is at it.
    #[error("{model} is arriving already")]
    Busy {
        /// The model.
        model: ModelId,
    },
    /// A model of this name is there, and it is another one.
    #[error("{model} is there already with other content, in {}: remove it, or have it replaced", path.display())]
    Exists {
        /// The model.
        model: ModelId,
        /// Where it is.
        path: PathBuf,
    },
    /// The file at the model's place is never replaced.
    #[error("{} is in the way: it is no model that arrived here, or belongs to another one", path.display())]
    InTheWay {
        /// The existing path.
        path: PathBuf,
    },
    /// A peer sent other bytes than the hash tree tells.
    #[error("piece {piece} of {file} is not what it should be")]
    Corrupt {
        /// Which file.
        file: FileName,
        /// Which piece of it.
        piece: u32,
    },
    /// A hub sent other bytes than it has announced.
    #[error("the bytes of {file} are not those that the hub has told: their hash is another")]
    Altered {
        /// Which file.
        file: FileName,
    },
    /// A peer sent a hash tree that is not the file's.
    #[error("the hash tree of {file} does not fit its hash")]
    Tree {
        /// Which file.
        file: FileName,
    },
    /// A piece came before the hash tree of its file.
    #[error("the hash tree of {file} is not there yet")]
    NoTree {
        /// Which file.
        file: FileName,
    },
    /// There is no such piece.
    #[error("the model has no piece {} of file {}", piece.piece, piece.file)]
    Outside {
        /// Which was asked for.
        piece: PieceId,
    },
    /// Something is missing.
    #[error("{arrived} of {total} bytes have arrived")]
    Incomplete {
        /// In bytes.
        arrived: u64,
        /// In bytes.
        total: u64,
    },
    /// Some of what was written is not on the disk as it was sent. It is missing now.
    #[error(
        "{bytes} bytes were damaged on the disk of {} after they had arrived: check the disk, and fetch \
         the model again",
        path.display()
    )]
    Damaged {
        /// Where.
        path: PathBuf,
        /// In bytes.
        bytes: u64,
    },
    /// A rule of the plain form was broken.
    #[error(transparent)]
    Stock(#[from] StockError),
    /// The arrived files are no model.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
}

/// A chunk of the plain form that cannot be taken. The transfer cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StockError {
    /// The chunk does not begin where the file ends.
    #[error("a chunk of {file} begins at {offset}, but {expected} bytes of it are there")]
    Offset {
        /// Which file.
        file: FileName,
        /// Where the chunk begins, in bytes.
        offset: u64,
        /// Where it should begin, in bytes.
        expected: u64,
    },
    /// The chunk would change what is there.
    #[error("a chunk of {file} at {offset} is other than what came before for this place")]
    Overwrites {
        /// Which file.
        file: FileName,
        /// Where the chunk begins, in bytes.
        offset: u64,
    },
    /// A chunk after the one that was called the last.
    #[error("a chunk of {file} came after its last one")]
    Closed {
        /// Which file.
        file: FileName,
    },
    /// More than the answer to the query announced.
    #[error("more arrives than the {total} bytes that were announced")]
    TooMuch {
        /// In bytes.
        total: u64,
    },
}

impl ArrivalError {
    /// The system's error about a path.
    pub(super) fn disk(path: &Path) -> impl Fn(io::Error) -> Self + '_ {
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full { path: path.to_owned(), source }
            }
            _ => Self::Disk { path: path.to_owned(), source },
        }
    }
}
