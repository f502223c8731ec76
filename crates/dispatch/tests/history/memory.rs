//! Which models providers have in memory, and whom a job waits for rather than have its model loaded.

use std::time::{Duration, Instant};

use base::{JobId, ModelName, ProviderId};
use dispatch::{Route, Start, Unloaded};

use super::{
    known::{JobRecord, JobState, Peer, Standing},
    oracle::Oracle,
};

/// How long an unknown load counts as taking.
const GUESS: Duration = Duration::from_secs(10);

/// A model that a provider does not have in memory.
#[derive(Debug, Clone)]
pub(crate) struct OnDisk {
    model: ModelName,
    takes: Option<Duration>,
    /// When the provider was first heard to load it.
    told: Option<Instant>,
    /// The job that it must be loading it for, and since when there was such a job.
    wanted: Option<(JobId, Instant)>,
}

impl OnDisk {
    fn is_loading(&self) -> bool {
        self.told.is_some() || self.wanted.is_some()
    }

    fn since(&self) -> Option<Instant> {
        self.told.or(self.wanted.map(|(_, since)| since))
    }
}

/// The models that a provider has reported, with those that were known before.
pub(crate) fn told(now: Instant, before: &[OnDisk], models: &[Unloaded]) -> Vec<OnDisk> {
    let read = |said: &Unloaded| {
        let old = before.iter().find(|old| old.model == said.model);
        let since = old.and_then(OnDisk::since).unwrap_or(now);
        let wanted = old.and_then(|old| old.wanted).filter(|_| !said.is_loading);
        let told = said.is_loading.then_some(since);
        OnDisk { model: said.model.clone(), takes: said.takes, told, wanted }
    };
    let mut all: Vec<OnDisk> = Vec::new();
    for said in models {
        all.retain(|other| other.model != said.model);
        all.push(read(said));
    }
    all
}

impl Peer {
    fn on_disk(&self, model: &ModelName) -> Option<&OnDisk> {
        self.memory.iter().find(|it| it.model == *model)
    }

    /// How long it would take to load the model, if it has not begun with that.
    pub(crate) fn would_load(&self, model: &ModelName) -> Option<Duration> {
        let idle = self.on_disk(model).filter(|it| !it.is_loading())?;
        Some(idle.takes.unwrap_or(GUESS))
    }

    pub(crate) fn start(&self, now: Instant, model: &ModelName) -> Start {
        let Some(it) = self.on_disk(model) else { return Start::AtOnce };
        let takes = it.takes.unwrap_or(GUESS);
        it.since().map_or(Start::Unloaded(takes), |since| {
            Start::Loading(takes.saturating_sub(now - since))
        })
    }

    pub(crate) fn note_given(&mut self, now: Instant, model: &ModelName, job: JobId) {
        let it = self.memory.iter_mut().find(|it| it.model == *model);
        if let Some(it) = it.filter(|it| it.told.is_none()) {
            let since = it.wanted.map_or(now, |(_, since)| since);
            it.wanted = Some((job, since));
        }
    }

    pub(crate) fn note_gone(&mut self, model: &ModelName, job: JobId) {
        for it in self.memory.iter_mut().filter(|it| it.model == *model) {
            it.wanted = it.wanted.filter(|(wanted, _)| *wanted != job);
        }
    }

    pub(crate) fn answers_with(&mut self, model: &ModelName) {
        self.memory.retain(|it| it.model != *model);
    }
}

impl Oracle {
    /// Until when a job waits for others rather than have this free provider load its model.
    pub(crate) fn waits_until(&self, peer: &Peer, job: &JobRecord) -> Option<Instant> {
        if job.spec.lent {
            return None;
        }
        let model = &job.spec.model;
        let present = match job.place {
            JobState::Queued(since, _) => self.now - since,
            _ => Duration::ZERO,
        };
        let shortest = self.config.queue_timeout.min(self.config.busy_timeout);
        let patience = peer.would_load(model)?.min(shortest);
        let left = patience.saturating_sub(job.waited + present);
        let rank = |peer: &Peer| {
            let foreign = !peer.offer.endpoints.contains(job.spec.endpoint);
            let distance = (job.spec.route != Route::Mesh).then_some(peer.offer.distance);
            (distance, foreign)
        };
        let worth = |other: &&Peer| {
            let full = self.occupied(other) >= other.capacity();
            let takes_jobs = other.throttle > 0 && other.may_be_tried() && !other.is_out();
            let good = full && takes_jobs && other.standing == Standing::Healthy;
            let near = rank(other) <= rank(peer) && other.id != peer.id;
            good && near && other.fits(job) && other.would_load(model).is_none()
        };
        (left > Duration::ZERO && self.peers.iter().any(|other| worth(&other)))
            .then(|| self.now + left)
    }

    /// Whether it cannot be known for whom a job waits rather than have its model loaded.
    pub(crate) fn is_unsure_of_loads(&self) -> bool {
        let somebody_may_load = self.peers.iter().any(|peer| !peer.memory.is_empty());
        somebody_may_load && (self.due_together || self.is_unsure())
    }

    /// When the first of the waiting jobs need not wait any more.
    pub(crate) fn next_load(&self) -> Option<Instant> {
        let queued = self.queued();
        let jobs = queued.iter().filter_map(|id| self.jobs.get(id));
        let waits = |job: &JobRecord| -> Option<Instant> {
            let free = self.peers.iter().filter(|peer| self.is_open_to(peer, job));
            free.filter_map(|peer| self.waits_until(peer, job)).min()
        };
        jobs.filter_map(waits).min()
    }

    /// The provider loads the model of its jobs.
    pub(crate) fn memory_of(&mut self, id: ProviderId, models: &[Unloaded]) {
        let now = self.now;
        if let Some(peer) = self.peer_mut(id) {
            peer.memory = told(now, &peer.memory, models);
        }
    }
}
