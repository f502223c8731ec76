//! The findings of all clients that read.

use std::time::Duration;

use super::{Outcome, skim::Skim};
use crate::stats::Times;

#[derive(Default)]
pub(super) struct Board {
    gaps: Times,
    finished: u32,
    bytes: Option<(u64, u64)>,
    missed: u64,
}

impl Board {
    /// A client got nothing for this long.
    pub(super) fn gap(&mut self, gap: Duration) {
        self.gaps.add(gap);
    }

    pub(super) fn finished(&mut self, skim: &Skim) {
        let bytes = skim.bytes();
        let (least, most) = self.bytes.unwrap_or((bytes, bytes));
        self.bytes = Some((least.min(bytes), most.max(bytes)));
        self.finished += 1;
        self.missed += skim.missed();
    }

    /// Writes the sums into the outcome.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        (outcome.least, outcome.most) = self.bytes.unwrap_or_default();
        outcome.finished = self.finished;
        outcome.missed = self.missed;
        outcome.gaps = self.gaps.clone();
    }
}
