//! A fellow's worker as a provider of this server's scheduler.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use base::{Endpoint, Endpoints, FactsByModel, IdMap, JobId, ProviderId, Scope};
use fleet::ServerId;
use scheduler::{
    Assignment, CancelReason, Distance, LeaveReason, Membership, Offer, Provider, Scheduler,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

use super::asking::{FellowWorker, RemoteJob};
use crate::{
    counts::Counts,
    facts::{Facts, WorkerFacts},
    streams::Streams,
};

/// The most workers of one fellow.
const MOST_WORKERS: usize = 4_096;

/// Requests with bodies up to this size, in bytes, are sent under the scheduler's lock.
const SMALL: usize = 16 * 1024;

/// How long jobs may take that are at a server when it begins to stop: it ends them itself, sooner.
const GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// The workers of all fellows, as this server's scheduler has them.
pub(crate) struct Seats {
    shared: Arc<Shared>,
    seats: Mutex<BTreeMap<ServerId, BTreeMap<ProviderId, Taken>>>,
}

/// The state that all seats share.
struct Shared {
    scheduler: Scheduler,
    streams: Arc<Streams>,
    counts: Arc<Counts>,
    /// Notified of each job, so that its slot counts as used.
    demand: Arc<Notify>,
    runtime: Handle,
}

/// A seat, with what was last said of its worker.
struct Taken {
    seat: Arc<Seat>,
    said: WorkerFacts,
    is_draining: bool,
}

/// One worker of a fellow.
///
/// `jobs` and `facts` are locked under the scheduler's lock, so nobody who holds them calls the scheduler.
/// `standing` is locked before it.
struct Seat {
    me: Weak<Seat>,
    worker: FellowWorker,
    name: String,
    server: String,
    shared: Arc<Shared>,
    facts: Mutex<Arc<FactsByModel>>,
    /// The jobs that it has, by the attempt, and how each is cancelled.
    jobs: Mutex<IdMap<JobId, (u32, oneshot::Sender<CancelReason>)>>,
    standing: Mutex<Standing>,
}

/// The scheduler's record of a seat.
struct Standing {
    membership: Option<Membership>,
    endpoints: Endpoints,
}

/// A change among the workers of a fellow.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) came: Vec<ProviderId>,
    pub(crate) went: Vec<ProviderId>,
}

impl Seats {
    /// Seats at this scheduler. To be made within the runtime that its jobs run in.
    pub(crate) fn new(scheduler: Scheduler, streams: Arc<Streams>, counts: Arc<Counts>) -> Self {
        let (demand, runtime) = (scheduler.demand(), Handle::current());
        let shared = Arc::new(Shared { scheduler, streams, counts, demand, runtime });
        Self { shared, seats: Mutex::default() }
    }

    /// Takes over what a fellow says of its workers. Those of one that drains get nothing new.
    pub(crate) fn update(
        &self,
        fellow: ServerId,
        server: &str,
        facts: &Facts,
        is_draining: bool,
    ) -> Change {
        let mut all = lock(&self.seats);
        let seats = all.entry(fellow).or_default();
        let mut change = Change::default();
        let said: BTreeMap<_, _> = facts
            .workers
            .iter()
            .take(MOST_WORKERS)
            .filter_map(|worker| Some((worker.provider()?, worker)))
            .collect();
        let gone: Vec<_> = seats.keys().filter(|id| !said.contains_key(id)).copied().collect();
        for id in gone {
            // Its jobs go on as long as their streams: the worker may have ended them before it went.
            if let Some(taken) = seats.remove(&id) {
                taken.seat.shared.scheduler.drain(id, "it is gone", GRACE);
                change.went.push(id);
            }
        }
        for (id, worker) in said {
            match seats.get_mut(&id) {
                Some(taken) if taken.said == *worker => {}
                Some(taken) => {
                    taken.seat.adjust(&taken.said, worker);
                    taken.said = worker.clone();
                }
                None if is_draining => {}
                None => {
                    let seat = Seat::join(&self.shared, fellow, server, id, worker);
                    seats.insert(id, Taken { seat, said: worker.clone(), is_draining: false });
                    change.came.push(id);
                }
            }
        }
        if is_draining {
            let scheduler = &self.shared.scheduler;
            // It is drained once, however often its fellow says so.
            let drain = |taken: &mut Taken| !std::mem::replace(&mut taken.is_draining, true);
            let new = seats.iter_mut().filter_map(|(id, taken)| drain(taken).then_some(*id));
            new.for_each(|id| _ = scheduler.drain(id, "its server stops", GRACE));
        }
        change
    }

    /// A fellow is gone, with all its workers.
    pub(crate) fn left(&self, fellow: ServerId) {
        let gone = lock(&self.seats).remove(&fellow);
        gone.into_iter().flatten().for_each(|(_, taken)| taken.seat.leave());
    }

    /// All leave: this server stops.
    pub(crate) fn shut_down(&self) {
        let gone = std::mem::take(&mut *lock(&self.seats));
        gone.into_values().flatten().for_each(|(_, taken)| taken.seat.leave());
    }
}

impl Seat {
    fn join(
        shared: &Arc<Shared>,
        fellow: ServerId,
        server: &str,
        id: ProviderId,
        worker: &WorkerFacts,
    ) -> Arc<Self> {
        let seat = Arc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            worker: FellowWorker { streams: Arc::clone(&shared.streams), fellow, provider: id },
            name: worker.name.clone(),
            server: server.to_owned(),
            shared: Arc::clone(shared),
            facts: Mutex::new(Arc::new(worker.facts.clone())),
            jobs: Mutex::default(),
            standing: Mutex::new(Standing { membership: None, endpoints: worker.endpoints() }),
        });
        let provider: Arc<dyn Provider> = Arc::<Self>::clone(&seat);
        let membership = shared.scheduler.join(id, offer(worker), provider);
        membership.memory(&worker.facts);
        lock(&seat.standing).membership = Some(membership);
        seat
    }

    /// Its fellow says something else of it.
    fn adjust(&self, before: &WorkerFacts, now: &WorkerFacts) {
        *lock(&self.facts) = Arc::new(now.facts.clone());
        let mut standing = lock(&self.standing);
        standing.endpoints = now.endpoints();
        let Some(membership) = &standing.membership else { return };
        if before.endpoints != now.endpoints {
            membership.endpoints(standing.endpoints);
        }
        if before.facts != now.facts {
            membership.memory(&now.facts);
        }
        // Models come last: new ones dispatch queued jobs at once.
        if before.models != now.models || before.facts != now.facts {
            membership.models(now.models.clone(), 0);
        }
    }

    fn leave(&self) {
        let membership = lock(&self.standing).membership.take();
        if let Some(membership) = membership {
            membership.leave(LeaveReason::Closed);
        }
        // Their writers are not theirs any more: the tasks see that, and tell the fellow.
        lock(&self.jobs).clear();
    }

    /// Waits for the end of an answer.
    async fn ask(
        self: Arc<Self>,
        (job, attempt, endpoint): (JobId, u32, Endpoint),
        asking: RemoteJob,
        canceled: oneshot::Receiver<CancelReason>,
    ) {
        let running = self.shared.counts.asking();
        let unserved = asking.run(canceled).await;
        drop(running);
        let mut jobs = lock(&self.jobs);
        if jobs.get(&job).is_some_and(|(its, _)| *its == attempt) {
            jobs.remove(&job);
        }
        drop(jobs);
        if let Some(writer) = unserved {
            self.serves_no(endpoint);
            writer.unserved();
        }
    }

    /// The worker does not serve this endpoint. Its fellow says so in its next record, too.
    fn serves_no(&self, endpoint: Endpoint) {
        let mut standing = lock(&self.standing);
        standing.endpoints = standing.endpoints.without(endpoint);
        if let Some(membership) = &standing.membership {
            membership.endpoints(standing.endpoints);
        }
    }
}

impl Provider for Seat {
    fn name(&self) -> &str {
        &self.name
    }

    fn fellow(&self) -> Option<&str> {
        Some(&self.server)
    }

    fn assign(&self, assignment: Assignment) {
        // A seat that nobody has gets no jobs.
        let Some(me) = self.me.upgrade() else { return };
        let (cancel, canceled) = oneshot::channel();
        lock(&self.jobs).insert(assignment.job, (assignment.attempt, cancel));
        let job = (assignment.job, assignment.attempt, assignment.endpoint);
        // A small request goes at once; sealing a large one takes too long for the scheduler's lock.
        if assignment.request.body.len() <= SMALL {
            let asking = self.worker.begin(assignment);
            self.shared.runtime.spawn(me.ask(job, asking, canceled));
        } else {
            let worker = self.worker.clone();
            let ask = async move { me.ask(job, worker.begin(assignment), canceled).await };
            self.shared.runtime.spawn(ask);
        }
        self.shared.demand.notify_one();
    }

    fn cancel(&self, job: JobId, reason: CancelReason) {
        let canceled = lock(&self.jobs).remove(&job);
        if let Some((_, cancel)) = canceled {
            // A task that has ended needs no word.
            let _ended = cancel.send(reason);
        }
    }

    /// Its server drains it.
    fn drain(&self, _: &str, _: Duration) {}

    /// All its jobs have ended, and it gets no more.
    fn retire(&self, _: bool) {
        if let Some(me) = self.me.upgrade() {
            // Called under the scheduler's lock.
            self.shared.runtime.spawn(async move { me.leave() });
        }
    }

    fn refresh(&self, _: &str) {}

    fn facts(&self) -> Arc<FactsByModel> {
        Arc::clone(&lock(&self.facts))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn offer(worker: &WorkerFacts) -> Offer {
    Offer {
        scope: Scope::server(),
        models: worker.models.clone(),
        unloaded: Vec::new(),
        max_concurrent: 0,
        load: 0,
        max_size: worker.max_size,
        endpoints: worker.endpoints(),
        distance: if worker.cloud { Distance::Cloud } else { Distance::Fellow },
        lingers: false,
        acknowledges: false,
        borrowed: true,
    }
}
