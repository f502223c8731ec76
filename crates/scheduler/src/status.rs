//! The current state of queues and providers.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use base::{Endpoints, FactsByModel, IdMap, ModelName, ProviderId, Scope};
use dispatch::{Dispatcher, Distance};

use crate::{observer::JobFacts, provider::Provider};

/// The current state of all queues and providers.
#[derive(Debug, Clone)]
pub struct Status {
    /// The connected workers.
    pub workers: Vec<WorkerStatus>,
    /// The queues that are not empty.
    pub queues: Vec<QueueStatus>,
    /// The number of waiting jobs.
    pub queue_depth: usize,
    /// The number of jobs at providers.
    pub in_flight: usize,
    /// When this state was read.
    pub at: Instant,
}

/// A connected worker, or another provider.
#[derive(Debug, Clone)]
pub struct WorkerStatus {
    /// Its id.
    pub id: ProviderId,
    /// The name it gave itself.
    pub name: String,
    /// The name of the server that it is connected to, if that is a fellow.
    pub fellow: Option<String>,
    /// The scope of its jobs.
    pub scope: Scope,
    /// Its models.
    pub models: Arc<BTreeSet<ModelName>>,
    /// The known facts about them, by name.
    pub model_facts: Arc<FactsByModel>,
    /// Whether it loads and unloads models on request.
    pub loads_models: bool,
    /// The shapes of request that it serves.
    pub endpoints: Endpoints,
    /// How far away it is.
    pub distance: Distance,
    /// The speed of its answers, or else the speed that it reports, in tokens a second.
    pub speed: Option<f64>,
    /// The share of its speed that it gives, in per cent; 0 while it is paused.
    pub throttle: u8,
    /// The largest job that it can be sent, in bytes.
    pub max_size: u64,
    /// How many jobs it takes at once; for a fellow's provider, how many slots are lent to this
    /// server.
    pub max_concurrent: u32,
    /// How many of its slots are lent to fellows.
    pub lent: u32,
    /// The load that it counts itself, in jobs.
    pub reported_load: u32,
    /// The jobs that it has from this server.
    pub in_flight: u32,
    /// Whether it gets no more jobs.
    pub draining: bool,
    /// How much longer it rests, after faults of its own.
    pub resting: Option<Duration>,
}

/// The load of a model that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelLoad {
    /// The name that its provider gave itself.
    pub provider: String,
    /// About how much longer it takes, if that is known.
    pub left: Option<Duration>,
}

/// A job that has not ended.
#[derive(Debug, Clone)]
pub struct RunningJob {
    /// Its facts.
    pub job: JobFacts,
    /// The name that its provider gave itself; `None` while it waits for one.
    pub provider: Option<Arc<str>>,
    /// The time from its acceptance until its provider got it, or until now.
    pub waited: Duration,
    /// How long its provider has had it; `None` while it waits.
    pub ran: Option<Duration>,
    /// Tokens of its answer so far, as far as known.
    pub tokens: Option<u64>,
}

/// A queue, copied so that it can be read without the scheduler's lock.
#[derive(Debug, Clone)]
pub struct QueueStatus {
    /// The scope of its providers.
    pub scope: Scope,
    /// Its model.
    pub model: ModelName,
    /// Jobs waiting in it.
    pub len: usize,
    /// How long ago its oldest job was accepted.
    pub oldest: Duration,
}

type ByLink = IdMap<ProviderId, Arc<dyn Provider>>;

impl Status {
    pub(crate) fn of(dispatcher: &Dispatcher, providers: &ByLink, at: Instant) -> Self {
        Self {
            workers: workers(dispatcher, providers, at),
            queues: queues(dispatcher, at),
            queue_depth: dispatcher.queue_depth(),
            in_flight: dispatcher.in_flight(),
            at,
        }
    }
}

fn workers(dispatcher: &Dispatcher, providers: &ByLink, at: Instant) -> Vec<WorkerStatus> {
    let mut workers: Vec<_> = dispatcher
        .providers()
        .map(|view| WorkerStatus {
            id: view.id,
            name: providers.get(&view.id).map_or("", |p| p.name()).to_owned(),
            fellow: providers.get(&view.id).and_then(|p| p.fellow()).map(str::to_owned),
            scope: view.scope().clone(),
            models: Arc::clone(view.models()),
            model_facts: providers.get(&view.id).map(|p| p.facts()).unwrap_or_default(),
            loads_models: providers.get(&view.id).is_some_and(|p| p.loads_models()),
            endpoints: view.endpoints,
            distance: view.distance,
            speed: view.speed.map(|thousandths| f64::from(thousandths) / 1000.0),
            throttle: view.throttle,
            max_size: view.max_size,
            max_concurrent: view.max_concurrent,
            lent: view.lent,
            reported_load: view.reported_load,
            in_flight: view.in_flight,
            draining: view.draining,
            resting: view.resting_until.and_then(|until| until.checked_duration_since(at)),
        })
        .collect();
    workers.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    workers
}

fn queues(dispatcher: &Dispatcher, at: Instant) -> Vec<QueueStatus> {
    dispatcher
        .queues()
        .map(|view| QueueStatus {
            scope: view.scope.clone(),
            model: view.model.clone(),
            len: view.len,
            oldest: at.saturating_duration_since(view.oldest),
        })
        .collect()
}
