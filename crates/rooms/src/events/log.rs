//! The last events and the watchers that wait for the next, behind one lock.

use std::{
    mem::take,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use tokio::runtime::Handle;

use super::{
    Form, Next,
    announcement::{EncodedEvent, Sight, Source},
    ring::{Batch, Bounds, MaySee, Ring, RingRead, StartPosition},
    subscription::Subscription,
    watchers::Watchers,
};

/// The sender of an event wakes up to this many watchers itself; more are woken by a task, once for
/// all events until it runs.
const WOKEN_AT_ONCE: usize = 32;

/// That task lets this many run before it wakes further ones: what it touched of them is still in the
/// processor's cache then, and they fit into the runtime's own queue.
const WOKEN_TOGETHER: usize = 64;

/// A bounded log of events with its watchers.
///
/// Its lock is held only briefly, and nothing but a filter of [`Source`]s is called under it: it
/// may be used while any other lock is held.
pub struct Log(Mutex<LogState>);

struct LogState {
    ring: Ring,
    watchers: Watchers,
    closed: bool,
    /// Counts how often all watchers were disconnected.
    era: u64,
    /// The forms whose watchers a task is about to wake; all false when no task is pending.
    due: [bool; Form::COUNT],
}

/// A watcher's position in a log.
pub(super) struct Watcher {
    form: Form,
    /// The id of the last event that it has seen or can skip.
    after: u64,
    /// The log's era when it subscribed.
    era: u64,
    /// Its slot among the watchers.
    slot: usize,
    may_see: Option<Box<MaySee>>,
}

impl Watcher {
    pub(super) const fn after(&self) -> u64 {
        self.after
    }
}

impl Log {
    /// An empty log that begins at `now`, in milliseconds since 1970: its ids are greater than
    /// those of every earlier log.
    pub fn new(bounds: Bounds, now: u64) -> Arc<Self> {
        Self::of(Ring::new(bounds, now))
    }

    /// An empty log of a room's epoch: its ids say which one, and are greater than those of earlier epochs.
    pub fn of_epoch(bounds: Bounds, epoch: u64) -> Arc<Self> {
        Self::of(Ring::of_epoch(bounds, epoch))
    }

    fn of(ring: Ring) -> Arc<Self> {
        let (watchers, due) = (Watchers::default(), Default::default());
        let state = LogState { ring, watchers, closed: false, era: 0, due };
        Arc::new(Self(Mutex::new(state)))
    }

    /// Appends an event of the log's own room and wakes its watchers. Does nothing when the log is
    /// closed.
    pub fn append(self: &Arc<Self>, encoded: &EncodedEvent) {
        self.push(encoded, None);
    }

    /// Appends the message of an event to a log of all rooms.
    pub fn append_from(self: &Arc<Self>, encoded: &EncodedEvent, source: &Arc<Source>) {
        if encoded.has_message() {
            self.push(&encoded.without_event(), Some(Arc::clone(source)));
        }
    }

    /// Subscribes to new events, or to all kept events after this id.
    pub fn subscribe(self: &Arc<Self>, form: Form, after: Option<u64>) -> Subscription {
        self.watch(form, after, None)
    }

    /// Like [`Log::subscribe`], limited by `may_see`, which is called under the log's lock and must
    /// be quick.
    pub fn subscribe_where(
        self: &Arc<Self>,
        form: Form,
        after: Option<u64>,
        may_see: impl Fn(&Source) -> Sight + Send + Sync + 'static,
    ) -> Subscription {
        self.watch(form, after, Some(Box::new(may_see)))
    }

    /// Ends all subscriptions, each after the events that the log still keeps.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        // Woken after the lock: a woken task may run at once and want it.
        let wakers = state.watchers.take([true; Form::COUNT]);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends all current subscriptions at once; new ones may follow.
    pub fn let_go(&self) {
        let mut state = self.lock();
        state.era += 1;
        let wakers = state.watchers.take([true; Form::COUNT]);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The number of watchers.
    pub fn watchers(&self) -> usize {
        self.lock().watchers.count([true; Form::COUNT])
    }

    fn push(self: &Arc<Self>, encoded: &EncodedEvent, source: Option<Arc<Source>>) {
        if encoded.is_empty() {
            return;
        }
        let mut state = self.lock();
        if state.closed {
            return;
        }
        state.ring.push(encoded, source);
        let due = encoded.forms();
        // The sender is often a request's own task: waking thousands in it would delay the answer.
        if state.watchers.count(due) > WOKEN_AT_ONCE
            && let Ok(runtime) = Handle::try_current()
        {
            // A pending task takes all forms that are due when it runs.
            if !state.add_due(due) {
                runtime.spawn(Arc::clone(self).wake_due());
            }
            return;
        }
        let wakers = state.watchers.take(due);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    async fn wake_due(self: Arc<Self>) {
        let wakers = self.take_due();
        for (woken, waker) in (1..).zip(wakers) {
            waker.wake();
            if woken % WOKEN_TOGETHER == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    fn take_due(&self) -> Vec<Waker> {
        let mut state = self.lock();
        let due = take(&mut state.due);
        state.watchers.take(due)
    }

    fn watch(
        self: &Arc<Self>,
        form: Form,
        after: Option<u64>,
        may_see: Option<Box<MaySee>>,
    ) -> Subscription {
        let mut state = self.lock();
        let StartPosition { after, missed } = state.ring.place(form, after);
        let (slot, era) = (state.watchers.enter(form), state.era);
        drop(state);
        let watcher = Watcher { form, after, era, slot, may_see };
        Subscription::new(Arc::clone(self), watcher, missed)
    }

    /// The next event for a watcher. Without one, its task is woken when there may be one.
    pub(super) fn poll_next(&self, watcher: &mut Watcher, cx: &Context<'_>) -> Poll<Next> {
        let mut state = self.lock();
        // Before the read: who was disconnected must not see one more event.
        if watcher.era != state.era {
            return Poll::Ready(Next::Closed);
        }
        match state.ring.read(watcher.form, watcher.after, watcher.may_see.as_deref()) {
            RingRead::Frames(Batch { frames, last }) => {
                watcher.after = last;
                Poll::Ready(Next::Frames(frames))
            }
            RingRead::Missed => Poll::Ready(Next::Lagged(watcher.form.lagged())),
            RingRead::Nothing(_) if state.closed => Poll::Ready(Next::Closed),
            RingRead::Nothing(last) => {
                watcher.after = last;
                let old = state.watchers.wait(watcher.form, watcher.slot, cx.waker());
                drop(state);
                // It may be the last reference to a task, whose end calls `leave` and needs the lock.
                drop(old);
                Poll::Pending
            }
        }
    }

    pub(super) fn leave(&self, watcher: &Watcher) {
        let waker = self.lock().watchers.leave(watcher.form, watcher.slot);
        drop(waker);
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    /// Marks the watchers of these forms to be woken. `false` when no task is pending that would
    /// wake them.
    fn add_due(&mut self, due: [bool; Form::COUNT]) -> bool {
        let before = self.due;
        self.due = std::array::from_fn(|form| before[form] || due[form]);
        before.contains(&true)
    }
}

#[cfg(test)]
mod tests;
