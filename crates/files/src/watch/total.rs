//! How many directories all watches of a daemon have together. The kernel's limit is one for all
//! programs of a user.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// How many there may be unless said otherwise.
const TOTAL: usize = 32_768;

/// What all watches share. One for a daemon.
#[derive(Debug)]
pub struct Watches {
    total: usize,
    used: AtomicUsize,
}

impl Watches {
    /// For so many directories in all.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self { total, used: AtomicUsize::new(0) }
    }

    /// How many are watched now.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl Default for Watches {
    fn default() -> Self {
        Self::new(TOTAL)
    }
}

/// What one watch has taken of it. Given back when dropped.
#[derive(Debug)]
pub(super) struct Taken {
    of: Arc<Watches>,
    count: usize,
}

impl Taken {
    pub(super) fn none(of: Arc<Watches>) -> Self {
        Self { of, count: 0 }
    }

    /// Takes one, if there is one left.
    pub(super) fn one(&mut self) -> bool {
        let total = self.of.total;
        let more = |used: usize| (used < total).then_some(used + 1);
        let took = self.of.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.count += usize::from(took);
        took
    }

    /// Gives so many back.
    pub(super) fn give(&mut self, count: usize) {
        let count = count.min(self.count);
        self.count -= count;
        self.of.used.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.give(self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_shared_and_given_back() {
        let watches = Arc::new(Watches::new(3));
        let mut one = Taken::none(watches.clone());
        let mut other = Taken::none(watches.clone());
        assert!(one.one() && one.one() && other.one());
        assert!(!other.one());
        one.give(1);
        assert!(other.one());
        drop(other);
        assert_eq!(watches.used(), 1);
        one.give(9);
        drop(one);
        assert_eq!(watches.used(), 0);
    }
}
