//! What is counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::TransferCounts;

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

/// One counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds `more` bytes.
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// One more.
    pub(super) fn one(&self) {
        self.add(1);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    /// What they are at.
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
