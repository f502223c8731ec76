//! The counts of transfers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferCounts {
    /// Bytes of files that were fetched and were right.
    pub bytes_in: u64,
    /// Bytes of files that were sent.
    pub bytes_out: u64,
    /// Pieces and hash trees of peers that were wrong.
    pub corrupt: u64,
    /// Slices, chunks and answers that nobody had asked for.
    pub unasked: u64,
    /// Requests that were refused: not shared, not there, or too many.
    pub refused: u64,
    /// Pulls that ended well.
    pub done: u64,
    /// Pulls that failed.
    pub failed: u64,
}

/// Counters of all transfers, both ways.
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
