//! Metrics for Prometheus: counters, and gauges that are set when metrics are requested.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use base::{ModelName, ProviderId};
use prometheus_client::{
    encoding::text::{encode_eof, encode_registry},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry::{Registry, Unit},
};
use scheduler::{Break, CancelReason, JobEnd, JobFacts, LeaveReason, Observer, Scheduler, Status};

use crate::ledger::LedgerMetrics;

/// The most models that have metrics of their own. Further models share the label `other`.
const MAX_MODELS: usize = 1_000;

/// The label that all rooms share.
const ROOMS: &str = "rooms";

/// The label that stands for the names of models that no provider has ever had.
pub(crate) const UNKNOWN_MODEL: &str = "unknown";

/// Whether a job ended because no provider has ever had its model. Clients can invent such names without end, so they
/// share [`UNKNOWN_MODEL`].
pub(crate) fn is_unknown_model(ended: &JobEnd) -> bool {
    ended.outcome.as_str() == "no_provider"
}

/// The metrics of one server.
pub(crate) struct Metrics {
    registry: Registry,
    models: RwLock<HashMap<ModelName, Arc<ModelMetrics>>>,
    families: Families,
    canceled: Family<Labels<1>, Counter>,
    resumed: Family<Labels<1>, Counter>,
    workers_lost: Family<Labels<1>, Counter>,
    http_connections: Gauge,
    ledger: LedgerMetrics,
    database_degraded: Gauge,
    refused: Family<Labels<1>, Counter>,
    snapshot: Mutex<Snapshot>,
}

/// The families with a label for the model.
#[derive(Clone)]
struct Families {
    requests: Family<Labels<2>, Counter>,
    requeues: Family<Labels<1>, Counter>,
    queue_wait: Family<Labels<1>, Histogram, fn() -> Histogram>,
    load_wait: Family<Labels<1>, Histogram, fn() -> Histogram>,
    first_byte: Family<Labels<1>, Histogram, fn() -> Histogram>,
    duration: Family<Labels<1>, Histogram, fn() -> Histogram>,
    tokens: Family<Labels<2>, Counter>,
    cost: Family<Labels<1>, Counter<f64, AtomicU64>>,
    bytes: Family<Labels<1>, Counter>,
}

/// The metrics of one model. They are kept here, because to look one up in a family means to build strings.
struct ModelMetrics {
    model: String,
    requeues: Counter,
    queue_wait: Histogram,
    load_wait: Histogram,
    first_byte: Histogram,
    duration: Histogram,
    prompt_tokens: Counter,
    completion_tokens: Counter,
    cost: Counter<f64, AtomicU64>,
    bytes: Counter,
    outcomes: Mutex<HashMap<&'static str, Counter>>,
}

/// Gauges that are set when metrics are requested.
#[derive(Clone, Default)]
struct Snapshot {
    queue_depth: Gauge,
    in_flight: Gauge,
    workers: Gauge,
    queue: Family<Labels<2>, Gauge>,
    oldest: Family<Labels<2>, Gauge<f64, AtomicU64>>,
    worker_load: Family<Labels<2>, Gauge<i64, AtomicI64>>,
    worker_in_flight: Family<Labels<2>, Gauge>,
    worker_capacity: Family<Labels<2>, Gauge>,
    worker_models: Family<Labels<3>, Gauge>,
}

/// The labels of a metric, by name.
pub(crate) type Labels<const N: usize> = [(&'static str, String); N];

impl Metrics {
    pub(crate) fn new() -> Self {
        let families = Families::new();
        let (canceled, workers_lost) = (Family::default(), Family::default());
        let resumed = Family::default();
        let (http_connections, snapshot) = (Gauge::default(), Snapshot::default());
        let mut registry = Registry::with_prefix("warren");
        families.register(&mut registry);
        snapshot.register(&mut registry);
        let help = "Breaks in answers that another worker could go on with, by what became of them";
        registry.register("answers_resumed", help, resumed.clone());
        registry.register("cancels", "Jobs that a worker was told to stop", canceled.clone());
        registry.register("workers_left", "Workers that left, by reason", workers_lost.clone());
        let refused = Family::default();
        let help = "Requests refused before they became jobs";
        registry.register("refused_requests", help, refused.clone());
        let help = "Open HTTP connections";
        registry.register("http_connections", help, http_connections.clone());
        let ledger = LedgerMetrics::default();
        let help = "Rows of usage that wait to be written";
        registry.register("usage_rows_waiting", help, ledger.waiting.clone());
        let help = "Rows of usage that could not be kept until they were written";
        registry.register("usage_rows_lost", help, ledger.lost.clone());
        let database_degraded = Gauge::default();
        let help = "1 while the database cannot keep what is written";
        registry.register("database_degraded", help, database_degraded.clone());
        Self {
            registry,
            models: RwLock::default(),
            families,
            canceled,
            resumed,
            workers_lost,
            http_connections,
            ledger,
            database_degraded,
            refused,
            snapshot: Mutex::new(snapshot),
        }
    }

    pub(crate) fn http_connections(&self) -> &Gauge {
        &self.http_connections
    }

    pub(crate) fn database_degraded(&self) -> &Gauge {
        &self.database_degraded
    }

    pub(crate) fn ledger(&self) -> LedgerMetrics {
        self.ledger.clone()
    }

    /// All metrics, in the text form of OpenMetrics. `refused`: how often requests that never became jobs were
    /// answered with each status. `more` appends metrics of other parts.
    pub(crate) fn encode(
        &self,
        scheduler: &Scheduler,
        refused: &[(u16, u64)],
        more: impl FnOnce(&mut String),
    ) -> String {
        let status = scheduler.status();
        let snapshot = self.snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        snapshot.take(&status);
        for (status, count) in refused {
            let counter = self.refused.get_or_create(&[("status", status.to_string())]);
            // The API counts these. The snapshot's lock is held, so that no request sets an older count last.
            counter.inner().store(*count, Ordering::Relaxed);
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.registry);
        more(&mut text);
        let _ = encode_eof(&mut text);
        text
    }

    /// The metrics of a job's model. All rooms share one label: users of rooms choose the names of their models,
    /// which must not use up the places of the server's own models, and the id of a room is a credential.
    fn of_job(&self, job: &JobFacts) -> Arc<ModelMetrics> {
        match job.scope.room_id() {
            None => self.of(&job.model),
            Some(_) => self.of(&ModelName::from(ROOMS)),
        }
    }

    fn of(&self, model: &ModelName) -> Arc<ModelMetrics> {
        {
            let models = self.models.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(metrics) = models.get(model) {
                return Arc::clone(metrics);
            }
        }
        let mut models = self.models.write().unwrap_or_else(PoisonError::into_inner);
        let key = if models.len() < MAX_MODELS { model.clone() } else { ModelName::from("other") };
        let made = || Arc::new(ModelMetrics::new(&self.families, key.as_str()));
        Arc::clone(models.entry(key.clone()).or_insert_with(made))
    }
}

impl Observer for Metrics {
    fn assigned(&self, job: &JobFacts, _: ProviderId, waited: Duration) {
        self.of_job(job).queue_wait.observe(waited.as_secs_f64());
    }

    fn requeued(&self, job: &JobFacts) {
        self.of_job(job).requeues.inc();
    }

    fn broke_off(&self, _: &JobFacts, broken: &Break) {
        let outcome = broken.outcome.as_str().to_owned();
        self.resumed.get_or_create(&[("outcome", outcome)]).inc();
    }

    fn first_byte(&self, job: &JobFacts, after: Duration) {
        self.of_job(job).first_byte.observe(after.as_secs_f64());
    }

    fn canceled(&self, _: &JobFacts, reason: CancelReason) {
        self.canceled.get_or_create(&[("reason", reason.to_string())]).inc();
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        let metrics = match is_unknown_model(ended) {
            true => self.of(&ModelName::from(UNKNOWN_MODEL)),
            false => self.of_job(job),
        };
        metrics.ended(&self.families, ended.outcome.as_str(), ended);
    }

    fn left(&self, _: ProviderId, why: LeaveReason) {
        let reason = match why {
            LeaveReason::Closed => "closed",
            LeaveReason::HeartbeatLost => "heartbeat_lost",
            LeaveReason::Drained => "drained",
        };
        self.workers_lost.get_or_create(&[("reason", reason.to_owned())]).inc();
    }
}

impl Families {
    fn new() -> Self {
        let times: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 20));
        Self {
            queue_wait: Family::new_with_constructor(times),
            load_wait: Family::new_with_constructor(times),
            first_byte: Family::new_with_constructor(times),
            duration: Family::new_with_constructor(times),
            requests: Family::default(),
            requeues: Family::default(),
            tokens: Family::default(),
            cost: Family::default(),
            bytes: Family::default(),
        }
    }

    fn register(&self, registry: &mut Registry) {
        registry.register("requests", "Jobs ended, by outcome", self.requests.clone());
        registry.register("requeues", "Jobs moved to another worker", self.requeues.clone());
        registry.register("tokens", "Tokens read and written", self.tokens.clone());
        let help = "What jobs cost, in the server's currency";
        registry.register("cost", help, self.cost.clone());
        registry.register_with_unit(
            "response",
            "Bytes of answers",
            Unit::Bytes,
            self.bytes.clone(),
        );
        let times = [
            ("queue_wait", "From acceptance to a worker", &self.queue_wait),
            ("load_wait", "From a worker that loads the model to the head", &self.load_wait),
            ("time_to_first_byte", "From acceptance to the answer's head", &self.first_byte),
            ("request_duration", "From acceptance to the end", &self.duration),
        ];
        for (name, help, family) in times {
            registry.register_with_unit(name, help, Unit::Seconds, family.clone());
        }
    }
}

impl ModelMetrics {
    fn new(families: &Families, model: &str) -> Self {
        let label = [("model", model.to_owned())];
        let tokens = |kind: &str| {
            let labels = [("model", model.to_owned()), ("kind", kind.to_owned())];
            families.tokens.get_or_create_owned(&labels)
        };
        Self {
            requeues: families.requeues.get_or_create_owned(&label),
            queue_wait: families.queue_wait.get_or_create_owned(&label),
            load_wait: families.load_wait.get_or_create_owned(&label),
            first_byte: families.first_byte.get_or_create_owned(&label),
            duration: families.duration.get_or_create_owned(&label),
            prompt_tokens: tokens("prompt"),
            completion_tokens: tokens("completion"),
            cost: families.cost.get_or_create_owned(&label),
            bytes: families.bytes.get_or_create_owned(&label),
            outcomes: Mutex::default(),
            model: model.to_owned(),
        }
    }

    fn ended(&self, families: &Families, outcome: &'static str, ended: &JobEnd) {
        self.duration.observe(ended.total.as_secs_f64());
        if let Some(wait) = ended.load_wait {
            self.load_wait.observe(wait.as_secs_f64());
        }
        self.bytes.inc_by(ended.bytes);
        self.prompt_tokens.inc_by(ended.usage.prompt_tokens.unwrap_or(0));
        self.completion_tokens.inc_by(ended.usage.completion_tokens.unwrap_or(0));
        if let Some(cost) = ended.cost {
            // A metric is a float; the ledger has the exact amount.
            self.cost.inc_by(cost.0 as f64 / 1e6);
        }
        let labels = || [("model", self.model.clone()), ("outcome", outcome.to_owned())];
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || families.requests.get_or_create_owned(&labels());
        outcomes.entry(outcome).or_insert_with(made).inc();
    }
}

impl Snapshot {
    fn register(&self, registry: &mut Registry) {
        registry.register("queue_depth", "Jobs waiting", self.queue_depth.clone());
        registry.register("in_flight", "Jobs at workers", self.in_flight.clone());
        registry.register("workers", "Connected workers", self.workers.clone());
        registry.register("queue", "Jobs waiting, by model", self.queue.clone());
        let help = "How long the oldest job of a queue has waited";
        registry.register_with_unit("queue_oldest", help, Unit::Seconds, self.oldest.clone());
        registry.register("worker_load", "Load as the worker counts it", self.worker_load.clone());
        let help = "Jobs at a worker";
        registry.register("worker_in_flight", help, self.worker_in_flight.clone());
        let help = "Models of a worker that are loaded, being loaded, or unloaded";
        registry.register("worker_models", help, self.worker_models.clone());
        let help = "Jobs a worker takes at once";
        registry.register("worker_capacity", help, self.worker_capacity.clone());
    }

    fn take(&self, status: &Status) {
        self.queue_depth.set(count(status.queue_depth));
        self.in_flight.set(count(status.in_flight));
        // The workers of fellows are counted by the fellows.
        let own = status.workers.iter().filter(|worker| worker.fellow.is_none());
        self.workers.set(count(own.count()));
        self.queue.clear();
        self.oldest.clear();
        for queue in &status.queues {
            let (scope, model) = match queue.scope.room_id() {
                None => (queue.scope.as_str(), queue.model.as_str()),
                Some(_) => (ROOMS, ROOMS),
            };
            let labels = [("scope", scope.to_owned()), ("model", model.to_owned())];
            self.queue.get_or_create(&labels).inc_by(count(queue.len));
            let oldest = self.oldest.get_or_create(&labels);
            oldest.set(queue.oldest.as_secs_f64().max(oldest.get()));
        }
        self.worker_load.clear();
        self.worker_in_flight.clear();
        self.worker_capacity.clear();
        self.worker_models.clear();
        for worker in &status.workers {
            let labels = [("worker", worker.name.clone()), ("id", worker.id.to_string())];
            self.worker_load.get_or_create(&labels).set(worker.reported_load.into());
            self.worker_in_flight.get_or_create(&labels).set(worker.in_flight.into());
            self.worker_capacity.get_or_create(&labels).set(worker.max_concurrent.into());
            let [name, id] = labels;
            for load in worker.model_facts.values().filter_map(|facts| facts.load) {
                let labels = [name.clone(), id.clone(), ("state", load.to_string())];
                self.worker_models.get_or_create(&labels).inc();
            }
        }
    }
}

/// A number as the value of a gauge.
fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A gauge with this value, for counts that another part keeps.
pub(crate) fn gauge(number: usize) -> Gauge {
    let gauge = Gauge::<i64>::default();
    gauge.set(count(number));
    gauge
}

/// A counter with this value, for counts that another part keeps.
pub(crate) fn counter(number: u64) -> Counter {
    let counter = Counter::<u64>::default();
    counter.inc_by(number);
    counter
}
