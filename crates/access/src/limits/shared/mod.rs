//! Limits that several servers share. Each server holds a slice of what a limit allows, and admits requests from it
//! without asking anybody. It asks for more before its slice is used up, and gives back what it does not use.
//!
//! - `slice`: one limit, pure; `demand`, `share`: how much is needed, and what may be used while the database is away
//! - `slices`: the limits of one key, pure
//! - `desk`: all keys, for the task that speaks to the database

mod demand;
mod desk;
mod share;
mod slice;
mod slices;

use std::{
    pin::pin,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use base::{JobId, KeyId, KeyLimits};
use store::pools::{Answer, Report};
use tokio::{
    sync::Notify,
    time::{Instant, timeout_at},
};

pub use self::desk::{Desk, UnsentUse};
use self::{
    slice::Mode,
    slices::{Refusal, Slices},
};
use super::{OverLimit, Standing};
use crate::{moment::Moment, prices::Charge};

/// How long a request waits for more of a slice.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

/// The most requests of one key that wait at the same time.
const MOST_WAITING: usize = 1_000;

/// The limits of one key.
pub(crate) struct SharedLimits {
    key: KeyId,
    desk: Desk,
    slices: Mutex<Slices>,
    /// Whether the desk has it on its list.
    listed: AtomicBool,
    /// Notified when the database has answered, or is found to be away.
    answered: Notify,
    waiting: AtomicUsize,
}

impl SharedLimits {
    pub(crate) fn new(key: KeyId, limits: KeyLimits, desk: &Desk) -> Self {
        let slices = Mutex::new(Slices::new(key.clone(), limits));
        let (desk, listed, waiting) = (desk.clone(), AtomicBool::default(), AtomicUsize::default());
        Self { key, desk, slices, listed, answered: Notify::new(), waiting }
    }

    /// Admits a job from the slices, or waits until they are larger.
    pub(crate) async fn admit(
        self: &std::sync::Arc<Self>,
        job: JobId,
        estimate: Charge,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        match self.reserve(job, estimate, now, false) {
            Ok(standing) => return Ok(standing),
            Err(Refusal::Over(over)) => return Err(over),
            Err(Refusal::Short) => {}
        }
        let Some(_waiting) = WaitCount::new(&self.waiting) else {
            return self.at_once(job, estimate, now);
        };
        let until = Instant::now() + PATIENCE;
        loop {
            let mut answered = pin!(self.answered.notified());
            answered.as_mut().enable();
            match self.reserve(job, estimate, Moment::now(), false) {
                Ok(standing) => return Ok(standing),
                Err(Refusal::Over(over)) => return Err(over),
                Err(Refusal::Short) => {}
            }
            if timeout_at(until, answered).await.is_err() {
                return self.at_once(job, estimate, Moment::now());
            }
        }
    }

    /// Admits a job from what the slices hold, without a wait.
    pub(crate) fn at_once(
        self: &std::sync::Arc<Self>,
        job: JobId,
        estimate: Charge,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        match self.reserve(job, estimate, now, true) {
            Ok(standing) => Ok(standing),
            Err(Refusal::Over(over)) => Err(over),
            // Never the case: neither a late request, nor one while the database is away, asks for more.
            Err(Refusal::Short) => Ok(Standing::default()),
        }
    }

    pub(crate) fn settle(self: &std::sync::Arc<Self>, job: JobId, used: Charge, now: Moment) {
        let is_known = self.lock().settle(job, used, now, &self.desk);
        if is_known {
            self.list();
        }
    }

    /// Changes the limits; what is in flight and held goes on to count.
    pub(crate) fn change(&self, limits: KeyLimits) {
        self.lock().change(limits);
    }

    fn reserve(
        self: &std::sync::Arc<Self>,
        job: JobId,
        estimate: Charge,
        now: Moment,
        late: bool,
    ) -> Result<Standing, Refusal> {
        let mode = match (self.desk.is_away(now.steady), late) {
            (true, _) => Mode::Away { servers: self.desk.servers() },
            (false, true) => Mode::Late,
            (false, false) => Mode::Usual,
        };
        let mut slices = self.lock();
        if self.desk.is_silent(now.steady) {
            slices.let_go();
        }
        let reserved = slices.reserve(job, estimate, mode, now, &self.desk);
        drop(slices);
        self.list();
        match reserved {
            Ok((standing, is_low)) => {
                if is_low {
                    self.desk.wake();
                }
                Ok(standing)
            }
            Err(refusal) => {
                if matches!(refusal, Refusal::Short) {
                    self.desk.wake();
                }
                Err(refusal)
            }
        }
    }

    fn list(self: &std::sync::Arc<Self>) {
        if !self.listed.load(Ordering::Acquire) {
            self.desk.list(self);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Slices> {
        self.slices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The desk's part: reports, answers and slices.
impl SharedLimits {
    fn reports(&self, now: Moment, all: bool) -> Vec<Report> {
        self.lock().reports(now, all)
    }

    fn answered(&self, answer: &Answer, servers: u64, now: std::time::Instant) {
        self.lock().answered(answer, servers, now);
    }

    fn tell_waiting(&self) {
        self.answered.notify_waiters();
    }
}

/// Counts as one waiting request until it is dropped.
struct WaitCount<'a>(&'a AtomicUsize);

impl<'a> WaitCount<'a> {
    /// `None`: too many wait.
    fn new(waiting: &'a AtomicUsize) -> Option<Self> {
        // Made before the check: if too many wait, its drop takes this one off the count again.
        let counted = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < MOST_WAITING).then_some(counted)
    }
}

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
