//! The bound on the directories of all watches of a daemon. It is needed because the kernel has one
//! limit for all programs of a user.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// The default bound.
const TOTAL: usize = 32_768;

/// The bound that all watches share. A daemon has one.
#[derive(Debug)]
pub struct Watches {
    total: usize,
    used: AtomicUsize,
}

impl Watches {
    /// A bound of this many directories.
    #[must_use]
    pub fn new(total: usize) -> Self {
        Self { total, used: AtomicUsize::new(0) }
    }

    /// The number of watched directories.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// The number of directories that may still be watched.
    pub(super) fn left(&self) -> usize {
        self.total.saturating_sub(self.used())
    }
}

impl Default for Watches {
    fn default() -> Self {
        Self::new(TOTAL)
    }
}

/// The directories that one watch counts towards the bound. They no longer count once this is dropped.
#[derive(Debug)]
pub(super) struct WatchQuota {
    of: Arc<Watches>,
    count: usize,
}

impl WatchQuota {
    pub(super) fn none(of: Arc<Watches>) -> Self {
        Self { of, count: 0 }
    }

    /// Counts one more directory, unless the bound is reached. Returns whether it was counted.
    pub(super) fn one(&mut self) -> bool {
        let total = self.of.total;
        let more = |used: usize| (used < total).then_some(used + 1);
        let took = self.of.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok();
        self.count += usize::from(took);
        took
    }

    /// Stops counting some directories, which are no longer watched.
    pub(super) fn give(&mut self, count: usize) {
        let count = count.min(self.count);
        self.count -= count;
        self.of.used.fetch_sub(count, Ordering::Relaxed);
    }
}

impl Drop for WatchQuota {
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
        let mut one = WatchQuota::none(watches.clone());
        let mut other = WatchQuota::none(watches.clone());
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
