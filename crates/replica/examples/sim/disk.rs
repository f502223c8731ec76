//! A member's disk: what is stored, what is on its way there, and older copies.

use std::collections::VecDeque;

use replica::{Fact, Stored};

use crate::plan::Stream;

#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) stored: Stored,
    on_the_way: VecDeque<(u64, Vec<Fact>)>,
    /// The token of the last stored transaction.
    last: u64,
    copies: Vec<Stored>,
    pub(crate) is_slow: bool,
}

/// The most copies of a disk that are kept.
const MOST_COPIES: usize = 6;

impl Disk {
    /// A copy of a disk, for another machine.
    pub(crate) fn cloned(&self) -> Self {
        Self { stored: self.stored.clone(), ..Self::default() }
    }

    pub(crate) fn write(&mut self, token: u64, facts: Vec<Fact>) {
        self.on_the_way.push_back((token, facts));
    }

    /// Stores everything up to `token`.
    pub(crate) fn store(&mut self, token: u64) {
        while self.on_the_way.front().is_some_and(|(first, _)| *first <= token) {
            self.store_one();
        }
    }

    fn store_one(&mut self) {
        if let Some((token, facts)) = self.on_the_way.pop_front() {
            self.last = token;
            facts.iter().for_each(|fact| self.stored.apply(fact));
        }
    }

    /// Of the transactions on their way some are stored, and the rest is lost. Gives back the token
    /// of the last stored one.
    pub(crate) fn crash(&mut self, stream: &mut Stream) -> u64 {
        let stored = stream.below(self.on_the_way.len() as u64 + 1);
        (0..stored).for_each(|_| self.store_one());
        self.on_the_way.clear();
        std::mem::take(&mut self.last)
    }

    pub(crate) fn copy(&mut self, stream: &mut Stream) {
        if self.copies.len() == MOST_COPIES {
            self.copies.remove(stream.index(MOST_COPIES));
        }
        self.copies.push(self.stored.clone());
    }

    /// Puts an older copy in place. False: there is none.
    pub(crate) fn restore(&mut self, stream: &mut Stream) -> bool {
        if self.copies.is_empty() {
            return false;
        }
        let at = stream.index(self.copies.len());
        self.stored = self.copies[at].clone();
        self.on_the_way.clear();
        true
    }
}
