//! Slots that are lent to fellows, and borrowed of them: drives [`fleet::Lending`] and [`fleet::Borrowing`].
//!
//! Each step is taken under the scheduler's lock, so that what is free is not given to two servers, and what is
//! promised is not used. Locks: this one's, then the scheduler's. Nothing that the scheduler calls comes here.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use base::{JobId, ProviderId};
use fleet::{Borrowing, Lending, Message, ServerId, borrowing, lending};
use scheduler::{FleetAccess, Scheduler};
use tokio::sync::Notify;

use crate::{
    clock::{now, until},
    transport::{Kind, Transport},
};

/// The slots that this server lends and borrows.
pub(crate) struct Slots {
    state: Mutex<SlotsState>,
    scheduler: Scheduler,
    transport: Arc<Transport>,
    /// A deadline may have moved.
    changed: Notify,
}

struct SlotsState {
    lending: Lending,
    borrowing: Borrowing,
    /// The own workers that may be lent.
    own: BTreeSet<ProviderId>,
    /// Whose worker it is, for each that may be borrowed, with what was said last: jobs that wait and jobs there.
    borrowed: BTreeMap<ProviderId, (ServerId, u32, u32)>,
}

/// A job of a fellow has a slot until this is dropped.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    job: JobId,
}

/// How many slots are lent and borrowed now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// To fellows.
    pub lent: u32,
    /// Of fellows.
    pub borrowed: u32,
}

impl Slots {
    pub(crate) fn new(scheduler: Scheduler, transport: Arc<Transport>) -> Arc<Self> {
        let state = SlotsState {
            lending: Lending::new(),
            borrowing: Borrowing::new(),
            own: BTreeSet::new(),
            borrowed: BTreeMap::new(),
        };
        Arc::new(Self { state: Mutex::new(state), scheduler, transport, changed: Notify::new() })
    }

    /// A fellow is there.
    pub(crate) fn joined(&self, fellow: ServerId) {
        self.act(|state, now, _| state.lending.handle(now, lending::Input::Joined { fellow }));
    }

    /// A fellow is gone, with all its workers.
    pub(crate) fn left(&self, fellow: ServerId) {
        self.act(|state, now, _| {
            state.borrowed.retain(|_, (of, ..)| *of != fellow);
            state.lending.handle(now, lending::Input::Left { fellow });
            state.borrowing.handle(now, borrowing::Input::Left { fellow });
        });
    }

    /// These workers may be borrowed of a fellow from now on, and these not any more.
    pub(crate) fn offered(&self, fellow: ServerId, came: &[ProviderId], went: &[ProviderId]) {
        self.act(|state, now, _| {
            for provider in went.iter().copied() {
                state.borrowed.remove(&provider);
                state.borrowing.handle(now, borrowing::Input::Gone { fellow, provider });
            }
            for provider in came.iter().copied() {
                state.borrowed.insert(provider, (fellow, 0, 0));
                state.borrowing.handle(now, borrowing::Input::Offered { fellow, provider });
            }
        });
    }

    /// These are this server's own workers that may be lent.
    pub(crate) fn own(&self, workers: BTreeSet<ProviderId>) {
        if self.lock().own == workers {
            return;
        }
        self.act(|state, now, _| {
            let before = std::mem::replace(&mut state.own, workers);
            for provider in before.difference(&state.own).copied() {
                state.lending.handle(now, lending::Input::Gone { provider });
            }
            for provider in state.own.difference(&before).copied() {
                state.lending.handle(now, lending::Input::Offered { provider });
            }
        });
    }

    /// A message of a fellow.
    pub(crate) fn message(&self, from: ServerId, message: Message) {
        self.act(|state, now, _| match message {
            Message::Want { .. } | Message::Return { .. } => {
                state.lending.handle(now, lending::Input::Message { from, message });
            }
            Message::Grant { .. } | Message::Recall { .. } => {
                state.borrowing.handle(now, borrowing::Input::Message { from, message });
            }
        });
    }

    /// The slot for a job of a fellow, if the fellow has one at this worker. `job`: its id here, never used before.
    pub(crate) fn begin(
        self: &Arc<Self>,
        fellow: ServerId,
        provider: ProviderId,
        job: JobId,
    ) -> Option<Slot> {
        let begun = self.lock().lending.begin(fellow, provider, job);
        begun.then(|| Slot { slots: Arc::clone(self), job })
    }

    pub(crate) fn counts(&self) -> SlotCounts {
        let state = self.lock();
        let lent = state.own.iter().map(|provider| state.lending.lent(*provider)).sum();
        SlotCounts { lent, borrowed: state.borrowing.borrowed(now()) }
    }

    /// Keeps the deadlines, and asks for slots when jobs wait for them, for ever.
    pub(crate) async fn keep(self: Arc<Self>) {
        let demand = self.scheduler.demand();
        loop {
            let next = self.lock().next();
            tokio::select! {
                () = until(next) => {}
                () = demand.notified() => {}
                () = self.changed.notified() => continue,
            }
            self.act(|_, _, _| {});
        }
    }

    /// Takes one step with the machines, and carries out what they put out.
    fn act(&self, step: impl FnOnce(&mut SlotsState, Instant, &mut FleetAccess<'_>)) {
        let mut state = self.lock();
        let (before, mut messages) = (state.next(), Vec::new());
        self.scheduler.fleet(|access| {
            let now = now();
            // This process may have been stopped: a lease that is over is never used.
            state.due(now);
            state.settle(now, access, &mut messages);
            state.count(now, access);
            step(&mut state, now, access);
            state.settle(now, access, &mut messages);
        });
        for (to, message) in messages {
            self.transport.send(to, Kind::Slots, [&message.encode(), &[]]);
        }
        let is_earlier = match (before, state.next()) {
            (Some(before), Some(next)) => next < before,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        drop(state);
        if is_earlier {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotsState {
    fn next(&self) -> Option<Instant> {
        self.lending.poll_timeout().into_iter().chain(self.borrowing.poll_timeout()).min()
    }

    fn due(&mut self, now: Instant) {
        self.lending.handle_timeout(now);
        self.borrowing.handle_timeout(now);
    }

    /// Tells the borrower how many jobs wait for each worker of a fellow, and how many are there.
    fn count(&mut self, now: Instant, access: &mut FleetAccess<'_>) {
        if self.borrowed.is_empty() {
            return;
        }
        let wants = access.wants();
        for (provider, (fellow, waiting, running)) in &mut self.borrowed {
            let (provider, fellow) = (*provider, *fellow);
            let (demand, used) =
                (wants.get(&provider).copied().unwrap_or(0), access.in_flight(provider));
            if used != *running {
                *running = used;
                self.borrowing.handle(now, borrowing::Input::Used { fellow, provider, jobs: used });
            }
            if demand != *waiting {
                *waiting = demand;
                self.borrowing
                    .handle(now, borrowing::Input::Demand { fellow, provider, jobs: demand });
            }
        }
    }

    fn settle(
        &mut self,
        now: Instant,
        access: &mut FleetAccess<'_>,
        messages: &mut Vec<(ServerId, Message)>,
    ) {
        loop {
            while let Some(output) = self.lending.poll_output() {
                match output {
                    lending::Output::Look { provider } => {
                        let (free, waiting) = access.lendable(provider);
                        let room = lending::Input::Room { provider, free, waiting };
                        self.lending.handle(now, room);
                    }
                    lending::Output::Lend { provider, slots } => access.lend(provider, slots),
                    lending::Output::Send { to, message } => messages.push((to, message)),
                    // Its stream is over with its fellow, and the job with its stream.
                    lending::Output::Cancel { .. } => {}
                }
            }
            let Some(output) = self.borrowing.poll_output() else { return };
            match output {
                borrowing::Output::Capacity { provider, slots, .. } => {
                    access.capacity(provider, slots);
                }
                borrowing::Output::Send { to, message } => messages.push((to, message)),
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let job = self.job;
        self.slots.act(|state, now, _| state.lending.handle(now, lending::Input::Ended { job }));
    }
}
