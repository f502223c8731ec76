//! Figures of jobs between servers.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Jobs between servers, counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    asked: AtomicU64,
    asking: AtomicU64,
    served: AtomicU64,
    serving: AtomicU64,
}

/// Jobs between servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Jobs of this server that went to workers of fellows, so far.
    pub asked: u64,
    /// Those that are there now.
    pub asking: u64,
    /// Jobs of fellows for workers of this server, so far.
    pub served: u64,
    /// Those that are here now.
    pub serving: u64,
}

/// A job that is counted as running until this is dropped.
pub(crate) struct Running {
    counts: Arc<Counts>,
    gauge: fn(&Counts) -> &AtomicU64,
}

impl Counts {
    /// A job goes to a fellow.
    pub(crate) fn asking(self: &Arc<Self>) -> Running {
        self.begin(|counts| &counts.asked, |counts| &counts.asking)
    }

    /// A job of a fellow is served.
    pub(crate) fn serving(self: &Arc<Self>) -> Running {
        self.begin(|counts| &counts.served, |counts| &counts.serving)
    }

    pub(crate) fn now(&self) -> JobCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        JobCounts {
            asked: read(&self.asked),
            asking: read(&self.asking),
            served: read(&self.served),
            serving: read(&self.serving),
        }
    }

    fn begin(
        self: &Arc<Self>,
        total: fn(&Self) -> &AtomicU64,
        gauge: fn(&Self) -> &AtomicU64,
    ) -> Running {
        total(self).fetch_add(1, Ordering::Relaxed);
        gauge(self).fetch_add(1, Ordering::Relaxed);
        Running { counts: Arc::clone(self), gauge }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        (self.gauge)(&self.counts).fetch_sub(1, Ordering::Relaxed);
    }
}
