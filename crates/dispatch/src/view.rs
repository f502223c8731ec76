//! Read-only views of the dispatcher, for health, metrics and administration.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use base::{Endpoints, JobId, ModelName, ProviderId, Scope};

use crate::{
    dispatcher::Dispatcher,
    distance::{Distance, Route},
    provider::{Drain, Provider},
    queue::{MOST_COUNTED, Queue},
};

/// A connected provider.
#[derive(Debug, Clone, Copy)]
pub struct ProviderView<'a> {
    /// Its id.
    pub id: ProviderId,
    /// How many jobs it takes at once; at least 1, except for a borrowed provider.
    pub max_concurrent: u32,
    /// The largest job that it can be sent, in the bytes of [`JobSpec::size`](crate::JobSpec::size).
    pub max_size: u64,
    /// Whether it belongs to a fellow.
    pub borrowed: bool,
    /// How many of its slots are lent to fellows.
    pub lent: u32,
    /// How many of its jobs are fellows' jobs.
    pub lent_jobs: u32,
    /// The shapes of request that it serves.
    pub endpoints: Endpoints,
    /// How far away it is.
    pub distance: Distance,
    /// The measured speed of its answers, or else the speed that it reports, in thousandths of a
    /// token a second. None while neither is known.
    pub speed: Option<u32>,
    /// The share of its speed that it offers, in per cent; 0 while it is paused.
    pub throttle: u8,
    /// Its reported load, adjusted for the jobs assigned and ended since.
    pub reported_load: u32,
    /// The number of our jobs that it has.
    pub in_flight: u32,
    /// The number of cancelled jobs that it may still be working on.
    pub lingering: u32,
    /// Whether it gets no more jobs.
    pub draining: bool,
    /// Until when it rests after faults. After that it is on trial until a good answer.
    pub resting_until: Option<Instant>,
    provider: &'a Provider,
}

/// A queue that holds at least one job.
#[derive(Debug, Clone, Copy)]
pub struct QueueView<'a> {
    /// The scope of its jobs.
    pub scope: &'a Scope,
    /// The model of its jobs.
    pub model: &'a ModelName,
    /// The number of waiting jobs.
    pub len: usize,
    /// When the oldest of its jobs was accepted. Time that the job spent at a provider before it
    /// was requeued is included.
    pub oldest: Instant,
}

/// The reason for which a job waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The number of connected providers that can serve it, once they have a free slot.
    pub providers: usize,
    /// The number of jobs that are before it in its queue, up to [`Wait::MOST_AHEAD`].
    pub ahead: usize,
}

/// The load of a model that a job at a provider waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loading {
    /// The provider that loads it.
    pub provider: ProviderId,
    /// About how much longer that takes, where it is known.
    pub left: Option<Duration>,
}

impl Wait {
    /// The most jobs that [`Wait::ahead`] counts.
    pub const MOST_AHEAD: usize = MOST_COUNTED;
}

impl<'a> ProviderView<'a> {
    fn of((id, provider): (ProviderId, &'a Provider)) -> Self {
        Self {
            id,
            max_concurrent: provider.max_concurrent,
            max_size: provider.max_size,
            borrowed: provider.borrowed,
            lent: provider.lent,
            lent_jobs: provider.lent_jobs,
            endpoints: provider.endpoints,
            distance: provider.distance,
            speed: provider.speed.now(),
            throttle: provider.throttle,
            reported_load: provider.reported,
            in_flight: provider.in_flight(),
            lingering: provider.lingering(),
            draining: provider.drain != Drain::No,
            resting_until: provider.health.resting_until(),
            provider,
        }
    }

    /// The scope of its jobs.
    pub fn scope(&self) -> &'a Scope {
        &self.provider.scope
    }

    /// Its models, in alphabetical order; `*` stands for every model.
    pub fn models(&self) -> &'a Arc<BTreeSet<ModelName>> {
        &self.provider.models
    }

    /// The jobs that it has.
    pub fn jobs(&self) -> impl Iterator<Item = JobId> + use<'a> {
        self.provider.jobs.iter().copied()
    }
}

impl Dispatcher {
    /// The connected providers, by id.
    pub fn providers(&self) -> impl Iterator<Item = ProviderView<'_>> {
        self.providers.iter().map(ProviderView::of)
    }

    /// The connected provider with this id.
    pub fn provider(&self, id: ProviderId) -> Option<ProviderView<'_>> {
        Some(ProviderView::of((id, self.providers.get(id)?)))
    }

    /// The models of the scope that at least one provider serves by name and without a drain,
    /// sorted.
    pub fn served_models(&self, scope: &Scope) -> impl Iterator<Item = &ModelName> {
        self.providers.models(scope)
    }

    /// The queues that hold jobs, by scope and model. Looks at every key's first job.
    pub fn queues(&self) -> impl Iterator<Item = QueueView<'_>> {
        self.queues.iter().filter_map(|(scope, model, queue)| {
            Some(QueueView { scope, model, len: queue.len(), oldest: self.oldest(queue)? })
        })
    }

    /// The reason for which a job in a queue waits. O(the providers of its model).
    pub fn wait(&self, job: JobId) -> Option<Wait> {
        let job = self.jobs.get(&job).filter(|job| job.hold().is_none())?;
        let providers = self.providers.able(job.demand()).count();
        Some(Wait { providers, ahead: self.queues.ahead(job) })
    }

    /// Whether some connected provider that is not draining serves the model, by name or by `*`.
    pub fn serves(&self, scope: &Scope, model: &ModelName) -> bool {
        self.providers.of(scope, model).any(|(_, provider)| !provider.is_draining())
    }

    /// The shapes in which the connected providers that do not drain serve the model to jobs of
    /// this route, all together. If there are none, those of the clouds. O(providers of the model).
    pub fn endpoints_of(&self, scope: &Scope, model: &ModelName, route: Route) -> Endpoints {
        let own = self.open_endpoints(scope, model, route);
        // Clouds are the last resort. A job that stays here cannot reach them.
        let stays = own != Endpoints::NONE || route == Route::LocalOnly;
        if stays { own } else { self.open_endpoints(scope, model, Route::Cloud) }
    }

    fn open_endpoints(&self, scope: &Scope, model: &ModelName, route: Route) -> Endpoints {
        let serving = self.providers.of(scope, model).map(|(_, provider)| provider);
        let open =
            serving.filter(|provider| !provider.is_draining() && route.reaches(provider.distance));
        open.fold(Endpoints::NONE, |all, provider| all.union(provider.endpoints))
    }

    /// The number of jobs that wait in queues.
    pub fn queue_depth(&self) -> usize {
        self.queues.depth()
    }

    /// The number of jobs at providers.
    pub fn in_flight(&self) -> usize {
        self.jobs.len() - self.queues.depth()
    }

    /// Whether there are no jobs at all.
    pub fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    fn oldest(&self, queue: &Queue) -> Option<Instant> {
        self.jobs.get(&queue.oldest()?).map(|job| job.accepted_at)
    }
}
