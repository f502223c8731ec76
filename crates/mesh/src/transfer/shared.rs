//! The state that pulls and the serving side share, and the counts of both.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use models::Library;
use protocol::admin::mesh::MeshTransfer;

use super::{queries::Queries, shelf::Shelf};
use crate::{peer::Peers, this_machine::ThisMachine, wan::Wan};

/// The most ended transfers that are remembered.
const MAX_ENDED: usize = 64;

/// The state that pulls and the serving side share.
pub(super) struct Shared {
    pub(super) machine: Arc<ThisMachine>,
    pub(super) peers: Arc<Peers>,
    /// Opens links to peers that have none.
    pub(super) wan: Arc<Wan>,
    pub(super) shelf: Shelf,
    pub(super) queries: Queries,
    pub(super) counts: Counters,
    /// The transfers that have ended; the newest last.
    ended: Mutex<VecDeque<MeshTransfer>>,
}

impl Shared {
    /// `store` is the directory in which models arrive.
    pub(super) fn new(
        machine: Arc<ThisMachine>,
        peers: Arc<Peers>,
        wan: Arc<Wan>,
        library: Arc<Library>,
        store: PathBuf,
    ) -> Self {
        Self {
            machine,
            peers,
            wan,
            shelf: Shelf::new(library, store),
            queries: Queries::default(),
            counts: Counters::default(),
            ended: Mutex::default(),
        }
    }

    /// Remembers a transfer that has ended.
    pub(super) fn remember(&self, transfer: MeshTransfer) {
        let mut ended = self.lock();
        if ended.len() >= MAX_ENDED {
            ended.pop_front();
        }
        ended.push_back(transfer);
    }

    /// The remembered transfers that have ended; the newest first.
    pub(super) fn all_ended(&self) -> Vec<MeshTransfer> {
        self.lock().iter().rev().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<MeshTransfer>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Bytes of files that were fetched, without wrong ones.
    pub bytes_in: u64,
    /// Bytes of files that were sent.
    pub bytes_out: u64,
    /// Pieces and hash trees of peers that were wrong.
    pub corrupt: u64,
    /// Slices, chunks and answers that were not requested.
    pub unasked: u64,
    /// Requests that were refused because the model is not shared or not here, or because they were
    /// too many.
    pub refused: u64,
    /// Pulls that ended well.
    pub done: u64,
    /// Pulls that failed.
    pub failed: u64,
}

/// The counters of all transfers, in both directions. They are atomic, since each chunk is counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) bytes_in: Count,
    pub(super) bytes_out: Count,
    pub(super) corrupt: Count,
    pub(super) unasked: Count,
    pub(super) refused: Count,
    pub(super) done: Count,
    pub(super) failed: Count,
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds `more` bytes.
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn one(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// The current counts.
    pub(super) fn read(&self) -> TransferCounts {
        TransferCounts {
            bytes_in: self.bytes_in.get(),
            bytes_out: self.bytes_out.get(),
            corrupt: self.corrupt.get(),
            unasked: self.unasked.get(),
            refused: self.refused.get(),
            done: self.done.get(),
            failed: self.failed.get(),
        }
    }
}
