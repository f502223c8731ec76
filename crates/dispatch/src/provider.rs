//! A connected provider.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use base::{Endpoints, JobId, ModelName, ProviderId, Scope};

use crate::{
    distance::Distance, health::Health, input::Offer, job::Job, queue::Reach, readiness::Readiness,
    route::Candidate, speed::Speed, unloaded::UnloadedModels,
};

/// How long a provider's reports may still count jobs after their cancellation: a report may cross
/// the cancellation, or the backend may need a moment.
const SETTLES: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) scope: Scope,
    /// Shared with views, since a crowd of providers may have many.
    pub(crate) models: Arc<BTreeSet<ModelName>>,
    /// The models that it does not have in memory.
    pub(crate) unloaded: UnloadedModels,
    /// The models with which it can resume answers that others began.
    pub(crate) continuing: BTreeSet<ModelName>,
    /// At least 1, except for a borrowed provider.
    pub(crate) max_concurrent: u32,
    /// Whether it belongs to a fellow.
    pub(crate) borrowed: bool,
    /// How many of its slots are lent, and how many of its jobs are lent ones.
    pub(crate) lent: u32,
    pub(crate) lent_jobs: u32,
    pub(crate) max_size: u64,
    pub(crate) endpoints: Endpoints,
    pub(crate) distance: Distance,
    pub(crate) speed: Speed,
    /// The share of its speed that it offers, in per cent; 0 while it is paused.
    pub(crate) throttle: u8,
    /// Its reported load, adjusted for the jobs assigned and ended since.
    pub(crate) reported: u32,
    /// The jobs it holds.
    pub(crate) jobs: BTreeSet<JobId>,
    /// Whether it may continue cancelled jobs, and which.
    lingers: bool,
    pub(crate) lingering: BTreeSet<JobId>,
    pub(crate) drain: Drain,
    pub(crate) health: Health,
    pub(crate) readiness: Readiness,
    /// Whether it acknowledges jobs.
    pub(crate) acknowledges: bool,
    /// Whether it has given no sign of life since it missed an acknowledgement.
    pub(crate) asleep: bool,
    /// When its waiting jobs are to be looked at, because one of them no longer waits for another
    /// provider then.
    pub(crate) look_at: Option<Instant>,
    /// The number of the last assignment to it.
    pub(crate) last_given: u64,
    /// The moving average of its seconds per job.
    service: Option<f64>,
    /// The number of cancelled jobs that it may still report, and until when.
    settling: Option<(u32, Instant)>,
}

/// Notes about a provider, by which others can skip it without looking at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether it may be given a job now, whatever its health.
    pub(crate) open: bool,
    /// Whether it rests or is on trial.
    pub(crate) limited: bool,
    /// Whether it does not have all its models in memory.
    pub(crate) unloaded: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drain {
    No,
    Draining,
    /// All its jobs have ended, and the driver was notified.
    Retired,
}

impl Provider {
    pub(crate) fn new(now: Instant, offer: Offer) -> Self {
        Self {
            scope: offer.scope,
            models: distinct(offer.models),
            unloaded: UnloadedModels::new(now, offer.unloaded),
            continuing: BTreeSet::new(),
            max_concurrent: capacity(offer.max_concurrent, offer.borrowed),
            borrowed: offer.borrowed,
            lent: 0,
            lent_jobs: 0,
            max_size: offer.max_size,
            endpoints: offer.endpoints,
            distance: offer.distance,
            speed: Speed::default(),
            throttle: 100,
            reported: offer.load,
            jobs: BTreeSet::new(),
            lingers: offer.lingers,
            lingering: BTreeSet::new(),
            drain: Drain::No,
            health: Health::new(),
            readiness: Readiness::default(),
            acknowledges: offer.acknowledges,
            asleep: false,
            look_at: None,
            last_given: 0,
            service: None,
            settling: None,
        }
    }

    pub(crate) fn standing(&self) -> Standing {
        Standing {
            open: self.is_free() && !self.is_draining(),
            limited: !self.health.is_healthy(),
            unloaded: !self.unloaded.is_empty(),
        }
    }

    pub(crate) fn in_flight(&self) -> u32 {
        u32::try_from(self.jobs.len()).unwrap_or(u32::MAX)
    }

    /// The number of cancelled jobs that it may still be working on.
    pub(crate) fn lingering(&self) -> u32 {
        u32::try_from(self.lingering.len()).unwrap_or(u32::MAX)
    }

    /// Its load in jobs: the larger of its own count and ours, plus the cancelled jobs that it
    /// continues.
    pub(crate) fn load(&self) -> u32 {
        self.reported.max(self.in_flight()).saturating_add(self.lingering())
    }

    /// The slots that own jobs cannot have: its load, and the lent slots that are free.
    pub(crate) fn occupied(&self) -> u32 {
        self.load().saturating_add(self.lent.saturating_sub(self.lent_jobs))
    }

    /// Whether it has a slot for an own job.
    pub(crate) fn is_free(&self) -> bool {
        self.is_awake() && self.occupied() < self.max_concurrent
    }

    /// Whether it has a lent slot for a lent job.
    pub(crate) fn has_lent_slot(&self) -> bool {
        self.is_awake() && self.lent_jobs < self.lent && self.load() < self.max_concurrent
    }

    /// How many more of its slots may be lent.
    pub(crate) fn lendable(&self) -> u32 {
        let open = self.is_awake() && !self.is_out() && self.health.is_healthy() && !self.borrowed;
        if open { self.max_concurrent.saturating_sub(self.occupied()) } else { 0 }
    }

    pub(crate) fn set_capacity(&mut self, max_concurrent: u32) {
        self.max_concurrent = capacity(max_concurrent, self.borrowed);
    }

    /// Whether it takes jobs, and lacks nothing but a free slot.
    pub(crate) fn is_only_full(&self) -> bool {
        self.is_awake() && self.health.is_healthy() && self.occupied() >= self.max_concurrent
    }

    fn is_awake(&self) -> bool {
        self.throttle > 0 && !self.asleep && self.readiness.may_try()
    }

    /// Whether it gets no jobs, or only such as show whether its backend is back.
    pub(crate) fn is_out(&self) -> bool {
        self.is_draining() || self.readiness.is_away()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.models.contains("*")
    }

    pub(crate) fn serves(&self, model: &ModelName) -> bool {
        self.is_wildcard() || self.models.contains(model)
    }

    /// The models by which it is found: `*` alone if it serves every model.
    pub(crate) fn listed_models(&self) -> impl Iterator<Item = &ModelName> {
        let all = self.is_wildcard();
        self.models.iter().filter(move |model| !all || model.is_wildcard())
    }

    /// The endpoints and the distance, which separate the jobs that it might take from others.
    pub(crate) fn reach(&self) -> Reach {
        Reach { endpoints: self.endpoints, distance: self.distance }
    }

    /// Records a job that it is given. Returns whether it begins to load the model for it.
    pub(crate) fn give(&mut self, now: Instant, job: &Job, number: u64) -> bool {
        let id = job.id();
        self.jobs.insert(id);
        self.lent_jobs += u32::from(job.spec.lent);
        // Its last report does not count this job.
        self.reported = self.reported.saturating_add(1);
        self.last_given = number;
        self.health.given(id);
        self.unloaded.given(now, &job.spec.model, id)
    }

    /// Takes a job away. Returns whether a model counted as being loaded for it and no longer does.
    pub(crate) fn release(&mut self, job: &Job) -> bool {
        let id = job.id();
        if !self.jobs.remove(&id) {
            return false;
        }
        self.lent_jobs -= u32::from(job.spec.lent);
        self.reported = self.reported.saturating_sub(1);
        self.health.released(id);
        self.unloaded.released(&job.spec.model, id)
    }

    /// Records that one of its jobs was cancelled. Returns whether it may continue that job.
    pub(crate) fn canceled(&mut self, now: Instant, job: JobId) -> bool {
        let count = self.settling_at(now).saturating_add(1).min(self.max_concurrent);
        self.settling = now.checked_add(SETTLES).map(|until| (count, until));
        if self.lingers {
            self.lingering.insert(job);
        }
        self.lingers
    }

    /// Records its reported load. The excess over the present count is ignored as far as recently
    /// cancelled jobs explain it: without this, a report that crosses a cancellation would leave
    /// the provider idle until the next report.
    pub(crate) fn reports(&mut self, load: u32, now: Instant) {
        let settled = load.saturating_sub(self.settling_at(now));
        self.reported = settled.max(load.min(self.reported));
    }

    fn settling_at(&self, now: Instant) -> u32 {
        self.settling.filter(|(_, until)| now < *until).map_or(0, |(count, _)| count)
    }

    /// Adds a job that took this long, and whose answer had this many tokens, to the averages.
    pub(crate) fn took(&mut self, time: Duration, tokens: Option<u64>) {
        self.speed.measured(time, tokens);
        let new = time.as_secs_f64();
        self.service = Some(self.service.map_or(new, |old| old + (new - old) / 8.0));
    }

    /// Its rate in jobs a second, once it has answered one.
    pub(crate) fn rate(&self) -> Option<f64> {
        // Answers that took no time must not make an infinite rate.
        let seconds = self.service?.max(0.001);
        Some(f64::from(self.max_concurrent) / seconds)
    }

    pub(crate) fn candidate(&self, now: Instant, id: ProviderId, model: &ModelName) -> Candidate {
        Candidate {
            provider: id,
            load: self.occupied(),
            capacity: self.max_concurrent,
            last_given: self.last_given,
            held: self.in_flight(),
            distance: self.distance,
            speed: self.speed.now(),
            throttle: self.throttle,
            start: self.unloaded.start(now, model),
        }
    }
}

/// An own provider takes at least one job.
fn capacity(max_concurrent: u32, borrowed: bool) -> u32 {
    // A fellow may lend no slot for a while. An own provider that took nothing would hold its
    // waiting jobs for ever.
    if borrowed { max_concurrent } else { max_concurrent.max(1) }
}

pub(crate) fn distinct(models: Vec<ModelName>) -> Arc<BTreeSet<ModelName>> {
    Arc::new(models.into_iter().collect())
}
