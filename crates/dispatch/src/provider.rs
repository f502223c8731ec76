//! Connected providers, and the models that they serve.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use base::{Endpoints, JobId, ModelName, ProviderId, Scope};

use crate::{
    distance::Distance,
    health::Health,
    input::{Offer, Unloaded},
    job::Job,
    queue::Reach,
    readiness::Readiness,
    route::Candidate,
    speed::Speed,
    unloaded::UnloadedModels,
};

/// How long a provider's reports may still count jobs after their cancellation: a report may cross
/// the cancellation, or the backend may need a moment.
const SETTLES: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Provider {
    pub(crate) scope: Scope,
    pub(crate) models: BTreeSet<ModelName>,
    /// Those that it does not have in memory.
    pub(crate) unloaded: UnloadedModels,
    /// At least 1.
    pub(crate) max_concurrent: u32,
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
    /// The number of the last assignment to it.
    pub(crate) last_given: u64,
    /// The moving average of its seconds per job.
    service: Option<f64>,
    /// The number of cancelled jobs that it may still report, and until when.
    settling: Option<(u32, Instant)>,
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
            max_concurrent: offer.max_concurrent.max(1),
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
            last_given: 0,
            service: None,
            settling: None,
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

    pub(crate) fn is_free(&self) -> bool {
        self.is_awake() && self.load() < self.max_concurrent
    }

    /// Whether it takes jobs, and lacks nothing but a free slot.
    pub(crate) fn is_only_full(&self) -> bool {
        self.is_awake() && self.health.is_healthy() && self.load() >= self.max_concurrent
    }

    fn is_awake(&self) -> bool {
        self.throttle > 0 && !self.asleep && self.readiness.may_try()
    }

    /// Whether it gets no jobs, or none but to see whether its backend is back.
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

    /// The waiting jobs that it might take.
    pub(crate) fn reach(&self) -> Reach {
        Reach { endpoints: self.endpoints, distance: self.distance }
    }

    /// Records a job that it is given. Returns whether it begins to load the model for it.
    pub(crate) fn give(&mut self, now: Instant, job: &Job, number: u64) -> bool {
        let id = job.id();
        self.jobs.insert(id);
        self.reported = self.reported.saturating_add(1);
        self.last_given = number;
        self.health.given(id);
        self.unloaded.given(now, &job.spec.model, id)
    }

    pub(crate) fn release(&mut self, job: &Job) {
        let id = job.id();
        if self.jobs.remove(&id) {
            self.unloaded.released(&job.spec.model, id);
            self.reported = self.reported.saturating_sub(1);
            self.health.released(id);
        }
    }

    /// Records that one of its jobs was cancelled. Returns whether it may continue it.
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
        let seconds = self.service?.max(0.001);
        Some(f64::from(self.max_concurrent) / seconds)
    }

    pub(crate) fn candidate(&self, now: Instant, id: ProviderId, model: &ModelName) -> Candidate {
        Candidate {
            provider: id,
            load: self.load(),
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

/// The connected providers. The driver's links bound their number.
#[derive(Debug, Default)]
pub(crate) struct Providers {
    by_id: BTreeMap<ProviderId, Provider>,
    /// The providers of each model, by name; those that offer `*` are only listed under `*`.
    serving: BTreeMap<(Scope, ModelName), BTreeSet<ProviderId>>,
    /// Providers at rest or on trial.
    limited: BTreeSet<ProviderId>,
    /// Providers that do not have all their models in memory.
    unloaded: BTreeSet<ProviderId>,
}

impl Providers {
    pub(crate) fn insert(&mut self, id: ProviderId, provider: Provider) {
        self.by_id.insert(id, provider);
        self.list(id);
        self.note_unloaded(id);
    }

    pub(crate) fn remove(&mut self, id: ProviderId) -> Option<Provider> {
        self.unlist(id);
        self.limited.remove(&id);
        self.unloaded.remove(&id);
        self.by_id.remove(&id)
    }

    pub(crate) fn set_models(&mut self, id: ProviderId, models: Vec<ModelName>) {
        self.unlist(id);
        if let Some(provider) = self.by_id.get_mut(&id) {
            provider.models = distinct(models);
        }
        self.list(id);
    }

    /// Updates the list of providers at rest or on trial after a change of the provider's health.
    pub(crate) fn note_health(&mut self, id: ProviderId) {
        match self.by_id.get(&id) {
            Some(provider) if !provider.health.is_healthy() => self.limited.insert(id),
            _ => self.limited.remove(&id),
        };
    }

    /// Returns whether the provider is connected.
    pub(crate) fn set_unloaded(
        &mut self,
        now: Instant,
        id: ProviderId,
        models: Vec<Unloaded>,
    ) -> bool {
        let provider = self.by_id.get_mut(&id);
        let known = provider.map(|provider| provider.unloaded.report(now, models)).is_some();
        self.note_unloaded(id);
        known
    }

    /// Records that a provider has a model in memory. Returns whether that is news.
    pub(crate) fn has_loaded(&mut self, id: ProviderId, model: &ModelName) -> bool {
        let provider = self.by_id.get_mut(&id);
        let news = provider.is_some_and(|provider| provider.unloaded.answers(model));
        if news {
            self.note_unloaded(id);
        }
        news
    }

    fn note_unloaded(&mut self, id: ProviderId) {
        match self.by_id.get(&id) {
            Some(provider) if !provider.unloaded.is_empty() => self.unloaded.insert(id),
            _ => self.unloaded.remove(&id),
        };
    }

    pub(crate) fn get(&self, id: ProviderId) -> Option<&Provider> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: ProviderId) -> Option<&mut Provider> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProviderId, &Provider)> {
        self.by_id.iter().map(|(id, provider)| (*id, provider))
    }

    pub(crate) fn ids(&self) -> Vec<ProviderId> {
        self.by_id.keys().copied().collect()
    }

    /// Whether every provider has all its models in memory, as far as it says.
    pub(crate) fn all_loaded(&self) -> bool {
        self.unloaded.is_empty()
    }

    pub(crate) fn with_unloaded(&self) -> Vec<ProviderId> {
        self.unloaded.iter().copied().collect()
    }

    pub(crate) fn limited(&self) -> Vec<ProviderId> {
        self.limited.iter().copied().collect()
    }

    /// All providers of the model in the scope, including draining and resting ones.
    pub(crate) fn of(
        &self,
        scope: &Scope,
        model: &ModelName,
    ) -> impl Iterator<Item = (ProviderId, &Provider)> {
        let named = self.serving.get(&(scope.clone(), model.clone()));
        let any = (!model.is_wildcard())
            .then(|| self.serving.get(&(scope.clone(), ModelName::from("*"))))
            .flatten();
        let ids = named.into_iter().chain(any).flatten();
        ids.filter_map(|id| self.by_id.get(id).map(|provider| (*id, provider)))
    }

    /// All providers that may get this job, now or when they are free and rested.
    pub(crate) fn able<'a>(
        &'a self,
        job: &'a Job,
    ) -> impl Iterator<Item = (ProviderId, &'a Provider)> {
        self.fitting(job).filter(|(_, provider)| !provider.is_out())
    }

    /// The same, and those whose backend is away, which may get it to see whether that is back.
    pub(crate) fn fitting<'a>(
        &'a self,
        job: &'a Job,
    ) -> impl Iterator<Item = (ProviderId, &'a Provider)> {
        self.of(&job.spec.scope, &job.spec.model)
            .filter(|(id, provider)| !provider.is_draining() && job.fits(*id, provider))
    }

    /// Whether to ignore rests and trials, because no healthy provider may get the job.
    pub(crate) fn only_limited(&self, job: &Job) -> bool {
        !self.able(job).any(|(_, provider)| provider.health.is_healthy())
    }

    /// Whether, for each shape that this provider serves, a healthy provider serves the model in
    /// it, and takes jobs at least as large and from at least as far. O(providers of the model).
    pub(crate) fn covered(&self, limited: &Provider, model: &ModelName) -> bool {
        let others = self.of(&limited.scope, model).map(|(_, provider)| provider);
        let healthy = others.filter(|other| {
            other.health.is_healthy()
                && !other.is_out()
                && other.max_size >= limited.max_size
                && reaches_more(other.distance, limited.distance)
        });
        let shapes = healthy.fold(Endpoints::NONE, |all, other| all.union(other.endpoints));
        limited.endpoints.is_within(shapes)
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
            && self.serving.is_empty()
            && self.limited.is_empty()
            && self.unloaded.is_empty()
    }

    fn list(&mut self, id: ProviderId) {
        for name in self.names(id) {
            self.serving.entry(name).or_default().insert(id);
        }
    }

    fn unlist(&mut self, id: ProviderId) {
        for name in self.names(id) {
            if let Some(ids) = self.serving.get_mut(&name) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.serving.remove(&name);
                }
            }
        }
    }

    fn names(&self, id: ProviderId) -> Vec<(Scope, ModelName)> {
        let Some(provider) = self.by_id.get(&id) else { return Vec::new() };
        let all = provider.is_wildcard();
        let listed = provider.models.iter().filter(|model| !all || model.is_wildcard());
        listed.map(|model| (provider.scope.clone(), model.clone())).collect()
    }
}

/// Whether all jobs that may go to a provider at the second distance may go to one at the first.
fn reaches_more(first: Distance, second: Distance) -> bool {
    let is_cloud = |distance| distance == Distance::Cloud;
    is_cloud(first) == is_cloud(second) && (first == Distance::Here || second != Distance::Here)
}

fn distinct(models: Vec<ModelName>) -> BTreeSet<ModelName> {
    models.into_iter().collect()
}
