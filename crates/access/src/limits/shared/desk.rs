//! The slices of all keys of this server, for the task that speaks to the database.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use base::{KeyId, Period};
use store::pools::{Answers, MAX_REPORTS, Measure, Report, SILENT_S};
use tokio::sync::Notify;

use super::{PATIENCE, SharedLimits, slices::PoolView};
use crate::{limits::allowance::began, moment::Moment, prices::Charge};

/// After this long without an answer, the database may have given this server's idle slices to others.
const SILENT: Duration = Duration::from_secs(SILENT_S as u64);

/// The slices of a server; clones share them.
#[derive(Clone)]
pub struct Desk(Arc<Inner>);

struct Inner {
    /// The keys whose slices hold something, or have something to report. Locked before a key's slices, never after.
    listed: Mutex<HashMap<KeyId, Arc<SharedLimits>>>,
    /// Notified when something has to be reported soon.
    work: Notify,
    line: Mutex<Line>,
    servers: AtomicU64,
    unsent: Vec<UnsentUse>,
}

/// The state of the connection to the database.
#[derive(Default)]
struct Line {
    away: bool,
    /// When the reports were made that are not answered yet.
    question_at: Option<Instant>,
    /// When the reports were made that were answered last.
    heard: Option<Instant>,
}

/// The use of a key in a day, by the unsent rows of the ledger that this server had when it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsentUse {
    /// The key.
    pub key: KeyId,
    /// The begin of the day, in milliseconds since 1970.
    pub day_ms: u64,
    /// The amount that it has used.
    pub used: Charge,
}

impl Desk {
    /// A desk without slices. `servers`: the number of servers that the database last named; `unsent`: the use that
    /// the database does not know of yet.
    pub fn new(servers: u64, unsent: Vec<UnsentUse>) -> Self {
        Self(Arc::new(Inner {
            listed: Mutex::default(),
            work: Notify::new(),
            line: Mutex::default(),
            servers: AtomicU64::new(servers.max(1)),
            unsent,
        }))
    }

    /// Waits until something has to be reported soon.
    pub async fn work(&self) {
        self.0.work.notified().await;
    }

    /// The reports that are due. If there are none, `None`; or an empty list, if `in_any_case` says that the database
    /// has to hear of this server. What is returned must be followed by [`Desk::answered`] or [`Desk::unanswered`]
    /// before the next call.
    pub fn reports(&self, now: Moment, in_any_case: bool) -> Option<Vec<Report>> {
        let reports = self.gather(now, false);
        let speaks = in_any_case || !reports.is_empty();
        if speaks {
            self.line().question_at = Some(now.steady);
        }
        speaks.then_some(reports)
    }

    /// The last reports of a server that ends: it gives back all that it holds. A job that is still in flight does not
    /// count from here on.
    pub fn last_reports(&self, now: Moment) -> Vec<Report> {
        self.all().iter().for_each(|limits| limits.lock().end());
        self.gather(now, true)
    }

    fn gather(&self, now: Moment, all: bool) -> Vec<Report> {
        let mut reports = Vec::new();
        for limits in self.all() {
            if reports.len() >= MAX_REPORTS {
                // The other reports are for the next call.
                self.wake();
                break;
            }
            reports.extend(limits.reports(now, all));
        }
        reports
    }

    /// Takes over what the database has answered.
    pub fn answered(&self, answers: &Answers, now: Moment) {
        self.0.servers.store(answers.servers.max(1), Ordering::Relaxed);
        let question_at = self.line().question_at;
        *self.line() = Line { away: false, question_at: None, heard: question_at };
        let listed = self.all_by_id();
        for answer in &answers.answers {
            if let Some(limits) = listed.get(&answer.pool.key) {
                limits.answered(answer, answers.servers, now.steady);
            }
        }
        self.over(listed);
    }

    /// Notes that the database has not answered: from here on, this server uses its share.
    pub fn unanswered(&self) {
        let mut line = self.line();
        (line.away, line.question_at) = (true, None);
        drop(line);
        let listed = self.all_by_id();
        listed.values().for_each(|limits| limits.lock().unanswered());
        self.over(listed);
    }

    /// Notes that other servers need what these keys do not use here.
    pub fn recall(&self, keys: &[KeyId]) {
        let listed = self.listed();
        keys.iter().filter_map(|key| listed.get(key)).for_each(|limits| limits.lock().recall());
    }

    /// The time until the next report is due; `most` at most.
    pub fn pause(&self, now: Instant, most: Duration) -> Duration {
        let all = self.all();
        let due = all.iter().filter_map(|limits| limits.lock().due(now)).min();
        due.map_or(most, |at| at.saturating_duration_since(now).min(most))
    }

    /// The number of servers that the database last named.
    pub fn servers(&self) -> u64 {
        self.0.servers.load(Ordering::Relaxed)
    }

    pub(super) fn wake(&self) {
        self.0.work.notify_one();
    }

    pub(super) fn list(&self, limits: &Arc<SharedLimits>) {
        let mut listed = self.listed();
        limits.listed.store(true, Ordering::Release);
        listed.insert(limits.key.clone(), Arc::clone(limits));
    }

    /// Whether the database is away, or does not answer in time.
    pub(super) fn is_away(&self, now: Instant) -> bool {
        let line = self.line();
        line.away || line.question_at.is_some_and(|at| now.saturating_duration_since(at) > PATIENCE)
    }

    /// Whether the database may have given away what this server held.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        let heard = self.line().heard;
        heard.is_some_and(|at| now.saturating_duration_since(at) >= SILENT)
    }

    /// Wakes the requests that wait for these keys, and forgets keys without a slice in use.
    fn over(&self, keys: HashMap<KeyId, Arc<SharedLimits>>) {
        for (key, limits) in keys {
            limits.tell_waiting();
            let mut listed = self.listed();
            let slices = limits.lock();
            // A later change lists the key again.
            if slices.are_empty() {
                limits.listed.store(false, Ordering::Release);
                listed.remove(&key);
            }
        }
    }

    fn all(&self) -> Vec<Arc<SharedLimits>> {
        self.listed().values().cloned().collect()
    }

    fn all_by_id(&self) -> HashMap<KeyId, Arc<SharedLimits>> {
        self.listed().clone()
    }

    fn listed(&self) -> MutexGuard<'_, HashMap<KeyId, Arc<SharedLimits>>> {
        self.0.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.0.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolView for Desk {
    fn servers(&self) -> u64 {
        self.servers()
    }

    fn unsent(&self, key: &KeyId, measure: Measure, period: (u64, u64)) -> u64 {
        let of_period = self
            .0
            .unsent
            .iter()
            .filter(|it| it.key == *key && (period.0..period.1).contains(&it.day_ms));
        let amount = |used: Charge| match measure {
            Measure::Money => used.money.0,
            _ => used.tokens,
        };
        of_period.map(|it| amount(it.used)).fold(0, u64::saturating_add)
    }
}

impl UnsentUse {
    /// The begin of the day of a time, in milliseconds since 1970.
    pub fn day(at_ms: u64) -> u64 {
        began(Period::Day, at_ms)
    }
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Desk({} servers)", self.servers())
    }
}
