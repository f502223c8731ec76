//! The time, and the alarms of all sessions, which one task rings.

use std::{
    cmp::Ordering,
    collections::BinaryHeap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Instant,
};

use tokio::{sync::Notify, time};

/// The current time of tokio's clock, which tests can stop.
pub(super) fn now() -> Instant {
    time::Instant::now().into_std()
}

/// A session, as its alarm calls it.
pub(crate) trait AlarmTarget: Send + Sync {
    /// Does all that is due.
    fn alarm_rang(self: Arc<Self>, now: Instant);
}

/// The alarms of all sessions. A session sets a further alarm only if that is earlier than the
/// alarm it has, so there are few.
#[derive(Default)]
pub(crate) struct Alarms {
    /// A session sets its alarm while it holds its own lock. So no session is called while this lock is
    /// held.
    set: Mutex<BinaryHeap<Alarm>>,
    earlier: Notify,
}

struct Alarm {
    at: Instant,
    session: Weak<dyn AlarmTarget>,
}

impl Alarms {
    /// Has [`AlarmTarget::alarm_rang`] called at this time.
    pub(crate) fn set(&self, at: Instant, session: Weak<dyn AlarmTarget>) {
        let mut set = self.lock();
        let is_first = set.peek().is_none_or(|first| at < first.at);
        set.push(Alarm { at, session });
        drop(set);
        if is_first {
            self.earlier.notify_one();
        }
    }

    /// Calls the sessions whose alarms are due, for ever.
    pub(crate) async fn run(self: Arc<Self>) {
        loop {
            let next = self.lock().peek().map(|alarm| alarm.at);
            let until = async {
                match next {
                    Some(at) => time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = until => self.ring(super::clock::now()),
                () = self.earlier.notified() => {}
            }
        }
    }

    fn ring(&self, now: Instant) {
        while let Some(session) = self.due(now) {
            if let Some(session) = session.upgrade() {
                session.alarm_rang(now);
            }
        }
    }

    fn due(&self, now: Instant) -> Option<Weak<dyn AlarmTarget>> {
        // One at a time: the session that is called may set its next alarm.
        let mut set = self.lock();
        let is_due = set.peek().is_some_and(|alarm| alarm.at <= now);
        is_due.then(|| set.pop()).flatten().map(|alarm| alarm.session)
    }

    fn lock(&self) -> MutexGuard<'_, BinaryHeap<Alarm>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The order is reversed: the earliest alarm is the greatest, so that it comes out of the heap
/// first.
impl Ord for Alarm {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at)
    }
}

impl PartialOrd for Alarm {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Alarm {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Alarm {}
