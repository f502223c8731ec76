//! One model's state.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use base::LoadState;

use super::{FailureRules, Refusal, Rules, Spec};
use crate::memory::Memory;

/// The view that people have of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Whether it is loaded.
    pub load: LoadState,
    /// How many requests it has.
    pub busy: u32,
    /// How many requests wait for it.
    pub waiting: usize,
    /// When it was last used.
    pub last_used: Option<Instant>,
    /// The memory that it takes.
    pub need: Memory,
}

/// The state of a model's server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// No server runs.
    Unloaded,
    /// It was started, but does not answer yet.
    Starting { generation: u64 },
    /// It answers.
    Loaded {
        generation: u64,
        busy: u32,
        since: Instant,
        /// It gets no new requests.
        draining: bool,
    },
    /// It was told to end.
    Stopping { generation: u64 },
}

/// A model.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) spec: Spec,
    /// Its new spec, which counts once its present server has ended.
    next: Option<Spec>,
    pub(super) state: State,
    /// The requests that wait for it, in order.
    pub(super) waiters: VecDeque<u64>,
    /// The numbers of the `Input::Unload`s that wait for its end.
    pub(super) unloads: Vec<u64>,
    /// It is no longer in the list of models.
    pub(super) doomed: bool,
    last_used: Option<Instant>,
    /// Since when requests have been waiting for it.
    waiting_since: Option<Instant>,
    failures: u32,
    /// Until when it is not started again, and its last failure.
    rest: Option<(Instant, Arc<str>)>,
}

impl Model {
    pub(super) fn new(spec: Spec) -> Self {
        Self {
            spec,
            next: None,
            state: State::Unloaded,
            waiters: VecDeque::new(),
            unloads: Vec::new(),
            doomed: false,
            last_used: None,
            waiting_since: None,
            failures: 0,
            rest: None,
        }
    }

    /// Takes the new spec at once, or, if it has another file or command, once the present server
    /// has ended.
    pub(super) fn take_spec(&mut self, spec: Spec) {
        self.doomed = false;
        self.next = None;
        if spec.revision == self.spec.revision {
            // The measured memory is more accurate than the estimate, so it is kept if it is
            // larger.
            let need = self.spec.need.at_least(spec.need);
            self.spec = Spec { need, ..spec };
        } else if self.state == State::Unloaded {
            (self.failures, self.rest) = (0, None);
            self.spec = spec;
        } else {
            self.next = Some(spec);
        }
    }

    /// Adds a request to its server, if the server may have one more. Returns the server's
    /// generation.
    pub(super) fn take(&mut self) -> Option<u64> {
        let leaves = self.leaves();
        match &mut self.state {
            State::Loaded { generation, busy, draining: false, .. } if !leaves => {
                *busy += 1;
                Some(*generation)
            }
            _ => None,
        }
    }

    /// The next waiting request and the generation of the server, if the server may have one more.
    pub(super) fn grant_next(&mut self) -> Option<(u64, u64)> {
        if self.waiters.is_empty() {
            self.waiting_since = None;
            return None;
        }
        let generation = self.take()?;
        self.waiters.pop_front().map(|claim| (claim, generation))
    }

    /// Queues a request, or says why it may not wait.
    pub(super) fn wait(&mut self, now: Instant, claim: u64, rules: &Rules) -> Result<(), Refusal> {
        let resting = self.rest.as_ref().filter(|_| rules.failures.is_refused(self.failures));
        if let Some((until, reason)) = resting.filter(|(until, _)| *until > now) {
            let (times, again_in) = (self.failures, *until - now);
            return Err(Refusal::Resting { times, again_in, reason: Arc::clone(reason) });
        }
        if self.waiters.len() >= rules.most_waiting {
            return Err(Refusal::Full(self.waiters.len()));
        }
        self.waiters.push_back(claim);
        self.waiting_since.get_or_insert(now);
        Ok(())
    }

    /// A request of this generation has ended.
    pub(super) fn give_back(&mut self, now: Instant, of: u64, answered: bool) {
        if let State::Loaded { generation, busy, .. } = &mut self.state
            && *generation == of
        {
            *busy = busy.saturating_sub(1);
            self.last_used = Some(now);
            if answered {
                self.failures = 0;
            }
        }
    }

    pub(super) fn start(&mut self, generation: u64) {
        self.state = State::Starting { generation };
    }

    /// Its server answers.
    pub(super) fn loaded(&mut self, now: Instant, generation: u64) {
        self.state = State::Loaded { generation, busy: 0, since: now, draining: false };
        self.last_used = Some(now);
        self.rest = None;
    }

    /// Takes the measured memory of its server. Returns whether its need has grown.
    pub(super) fn measured(&mut self, of: u64, memory: Memory) -> bool {
        let before = self.spec.need;
        if matches!(self.state, State::Loaded { generation, .. } if generation == of) {
            self.spec.need = before.at_least(memory);
        }
        self.spec.need != before
    }

    /// Its server has failed.
    pub(super) fn failed(&mut self, now: Instant, reason: &Arc<str>, rules: &FailureRules) {
        if let State::Loaded { since, .. } = self.state
            && now.saturating_duration_since(since) >= rules.settled
        {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.rest = Some((now + rules.wait(self.failures), Arc::clone(reason)));
        self.ended();
    }

    /// Its server has ended.
    pub(super) fn ended(&mut self) {
        self.state = State::Unloaded;
        if let Some(next) = self.next.take() {
            (self.failures, self.rest) = (0, None);
            self.spec = next;
        }
    }

    /// Marks its server as ending. Returns the server's generation; `None` if there is no server or
    /// it is ending already.
    pub(super) fn stop(&mut self) -> Option<u64> {
        match self.state {
            State::Starting { generation } | State::Loaded { generation, .. } => {
                self.state = State::Stopping { generation };
                Some(generation)
            }
            State::Unloaded | State::Stopping { .. } => None,
        }
    }

    pub(super) fn set_draining(&mut self, is: bool) {
        if let State::Loaded { draining, .. } = &mut self.state {
            *draining = is;
        }
    }

    /// Whether its present server must end as soon as it has answered its requests.
    pub(super) fn leaves(&self) -> bool {
        self.doomed || self.next.is_some()
    }

    /// Whether it stays even if another model needs its memory.
    pub(super) fn is_kept(&self) -> bool {
        self.spec.keep && !self.leaves() && !self.is_stopping()
    }

    /// Whether it is loading something that is not wanted any more.
    pub(super) fn starts_in_vain(&self) -> bool {
        self.leaves() && self.is_loading()
    }

    /// Whether it is loaded, and nobody uses it.
    pub(super) fn may_stop(&self) -> bool {
        matches!(self.state, State::Loaded { busy: 0, .. })
    }

    /// Whether it may be started now.
    pub(super) fn may_start(&self, now: Instant) -> bool {
        self.state == State::Unloaded && self.rest.as_ref().is_none_or(|(until, _)| *until <= now)
    }

    /// Whether somebody waits for it to be started.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiters.is_empty() && !self.is_loading()
    }

    pub(super) fn is_loading(&self) -> bool {
        matches!(self.state, State::Starting { .. })
    }

    pub(super) fn is_starting(&self, generation: u64) -> bool {
        self.state == State::Starting { generation }
    }

    pub(super) fn is_stopping(&self) -> bool {
        matches!(self.state, State::Stopping { .. })
    }

    /// Whether it takes memory.
    pub(super) fn is_present(&self) -> bool {
        self.state != State::Unloaded
    }

    pub(super) fn busy(&self) -> u32 {
        match self.state {
            State::Loaded { busy, .. } => busy,
            _ => 0,
        }
    }

    pub(super) fn waiting_since(&self) -> Option<Instant> {
        self.waiting_since
    }

    /// Whether requests have waited for it for at least `patience`.
    pub(super) fn is_overdue(&self, now: Instant, patience: Duration) -> bool {
        self.waiting_since.is_some_and(|since| since + patience <= now)
    }

    /// The times at which something changes for the requests that wait for it: the end of its rest,
    /// and of their patience.
    pub(super) fn waits_until(&self, patience: Duration) -> impl Iterator<Item = Instant> {
        let rest = self.rest.as_ref().map(|(until, _)| *until);
        let overdue = self.waiting_since.map(|since| since + patience);
        let waits = self.state == State::Unloaded;
        rest.into_iter().chain(overdue).filter(move |_| waits)
    }

    /// When it will be unloaded because nobody uses it.
    pub(super) fn ttl_ends(&self) -> Option<Instant> {
        let ttl = self.spec.ttl.filter(|_| !self.spec.keep && self.may_stop())?;
        self.last_used.map(|used| used + ttl)
    }

    /// The key by which loaded models go: unused ones first, then those whose last use was longest
    /// ago.
    pub(super) fn worth(&self) -> (bool, Option<Instant>) {
        (!self.may_stop(), self.last_used)
    }

    pub(super) fn view(&self) -> View {
        let load = match self.state {
            State::Unloaded | State::Stopping { .. } => LoadState::Unloaded,
            State::Starting { .. } => LoadState::Loading,
            State::Loaded { .. } => LoadState::Loaded,
        };
        let (busy, waiting) = (self.busy(), self.waiters.len());
        View { load, busy, waiting, last_used: self.last_used, need: self.spec.need }
    }
}
