//! Figures of jobs between servers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Jobs between servers, counted.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<JobCounts>);

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
pub(crate) struct CountedJob {
    counts: Arc<Counts>,
    gauge: fn(&mut JobCounts) -> &mut u64,
}

impl Counts {
    /// A job goes to a fellow.
    pub(crate) fn asking(self: &Arc<Self>) -> CountedJob {
        self.lock().asked += 1;
        self.begin(|counts| &mut counts.asking)
    }

    /// A job of a fellow is served.
    pub(crate) fn serving(self: &Arc<Self>) -> CountedJob {
        self.lock().served += 1;
        self.begin(|counts| &mut counts.serving)
    }

    pub(crate) fn now(&self) -> JobCounts {
        *self.lock()
    }

    fn begin(self: &Arc<Self>, gauge: fn(&mut JobCounts) -> &mut u64) -> CountedJob {
        *gauge(&mut self.lock()) += 1;
        CountedJob { counts: Arc::clone(self), gauge }
    }

    fn lock(&self) -> MutexGuard<'_, JobCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CountedJob {
    fn drop(&mut self) {
        *(self.gauge)(&mut self.counts.lock()) -= 1;
    }
}
