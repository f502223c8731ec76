//! A job that has been accepted and has not ended.

use std::time::{Duration, Instant};

use base::{Endpoints, JobId, ModelName, ProviderId};

use crate::{
    config::Config,
    distance::Route,
    input::{JobSpec, Resumable},
    provider::Provider,
};

/// How often a job may be requeued while it looks for a provider that resumes its answer. Its time
/// in queues ends almost every such job before that.
const MAX_REQUEUES_OF_REST: u32 = 100;

#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) spec: JobSpec,
    /// Its position in the order of acceptance, which is its age; requeueing does not change it.
    pub(crate) seq: u64,
    pub(crate) accepted_at: Instant,
    /// Its time in queues, without the present wait.
    pub(crate) waits: Waits,
    /// Whether its fallbacks were looked at while the providers of its present model were busy.
    pub(crate) looked: bool,
    /// The number of its assignments.
    pub(crate) assigned: u32,
    /// The number of its requeues for its present model, without retries in another shape.
    pub(crate) requeued: u32,
    /// The number of times that a provider turned out not to serve the requested endpoint.
    pub(crate) unserved: u32,
    /// The number of times that a backend took no requests.
    pub(crate) unready: u32,
    /// Its targets after the first: the fallbacks, then the clouds of all its models.
    later: Vec<Target>,
    /// How many of these targets it has used or skipped.
    fallen_back: usize,
    /// The providers that failed or declined it with its present model. At most one more than the
    /// requeues that it may have.
    pub(crate) avoided: Vec<ProviderId>,
    /// How another provider may resume its answer, once that has begun; `None` if none may.
    pub(crate) resumable: Option<Resumable>,
    /// Whether the provider that began the answer could resume others' answers. Then it is worth
    /// waiting for one that joins.
    pub(crate) awaits: bool,
    /// How its answer has broken off, if no provider has resumed it yet.
    pub(crate) broken_off: Option<Break>,
    /// How often its answer has broken off.
    pub(crate) resumes: u32,
    pub(crate) state: JobState,
}

/// How an answer breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// Its provider is gone, or drained to the end.
    Lost,
    /// Its provider failed.
    Failed,
    /// Its provider was silent for too long.
    Silent,
}

/// A model, and how far the job may go for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) model: ModelName,
    pub(crate) route: Route,
}

/// How long a job has waited in queues.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Waits {
    /// Without a provider, since it last waited with a provider.
    absent: Duration,
    /// For providers without a free slot.
    busy: Duration,
    /// In all.
    total: Duration,
}

/// The demands of a job on its provider, for one of its targets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand<'a> {
    pub(crate) job: &'a Job,
    pub(crate) model: &'a ModelName,
    pub(crate) route: Route,
    avoided: &'a [ProviderId],
    /// A provider that it would leave, and so would avoid as well.
    left: Option<ProviderId>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum JobState {
    /// In its queue, since this time.
    Queued {
        since: Instant,
        /// Whether a connected provider can serve it, once that has a free slot. `since` is at
        /// least as late as the last change of this.
        served: bool,
    },
    /// At a provider.
    Held(Hold),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) provider: ProviderId,
    pub(crate) since: Instant,
    /// The known endpoints of the provider when it got the job.
    pub(crate) endpoints: Endpoints,
    /// The number of the provider's rests before it got the job.
    pub(crate) rests: u32,
    pub(crate) phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The provider has not acknowledged it, and should.
    Given,
    /// No head yet: it may move to another provider.
    Unbegun,
    /// The answer has begun.
    Begun,
    /// It has begun, and the driver was asked when bytes last moved.
    Asked,
    /// The consumer has all of it; the provider has not ended it yet.
    Complete,
}

impl Job {
    pub(crate) fn new(mut spec: JobSpec, seq: u64, now: Instant) -> Self {
        spec.clouds &= spec.route != Route::LocalOnly;
        if spec.lent {
            (spec.clouds, spec.fallbacks) = (false, Vec::new());
        }
        Self {
            later: later(&spec),
            spec,
            seq,
            accepted_at: now,
            waits: Waits::default(),
            looked: false,
            assigned: 0,
            requeued: 0,
            unserved: 0,
            unready: 0,
            fallen_back: 0,
            avoided: Vec::new(),
            resumable: None,
            awaits: false,
            broken_off: None,
            resumes: 0,
            state: JobState::Queued { since: now, served: false },
        }
    }

    /// Its demand at its present target.
    pub(crate) fn demand(&self) -> Demand<'_> {
        let (model, route) = (&self.spec.model, self.spec.route);
        Demand { job: self, model, route, avoided: &self.avoided, left: None }
    }

    /// Its demand once it has gone on to this target, for which it avoids no provider yet.
    pub(crate) fn demand_for<'a>(&'a self, target: &'a Target) -> Demand<'a> {
        Demand { job: self, model: &target.model, route: target.route, avoided: &[], left: None }
    }

    /// Its present target.
    pub(crate) fn target(&self) -> Target {
        Target { model: self.spec.model.clone(), route: self.spec.route }
    }

    /// Moves to its next target, for which it avoids no provider yet. Returns whether there is one.
    pub(crate) fn next_target(&mut self) -> bool {
        let Some(Target { model, route }) = self.targets_left().first().cloned() else {
            return false;
        };
        (self.spec.model, self.spec.route) = (model, route);
        self.fallen_back += 1;
        self.requeued = 0;
        self.avoided.clear();
        true
    }

    /// Moves this many targets further.
    pub(crate) fn go_on(&mut self, targets_on: usize) {
        (0..targets_on).for_each(|_| _ = self.next_target());
    }

    /// The targets that it has left.
    pub(crate) fn targets_left(&self) -> &[Target] {
        self.later.get(self.fallen_back..).unwrap_or_default()
    }

    /// How many of those targets it may go on to although the providers of its present target are
    /// only busy. A job does not go on to a cloud while own providers will serve it.
    pub(crate) fn targets_while_busy(&self) -> usize {
        let is_cloud = |route| route == Route::Cloud;
        let here = is_cloud(self.spec.route);
        self.targets_left().iter().take_while(|target| is_cloud(target.route) == here).count()
    }

    /// Adds its present wait to its waits. From now on it waits with a provider (`served`) or
    /// without one.
    pub(crate) fn waits_on(&mut self, now: Instant, served: bool) {
        if let JobState::Queued { since, served: before } = self.state {
            self.waits.add(now.saturating_duration_since(since), before);
        }
        if served {
            self.waits.absent = Duration::ZERO;
        }
        self.state = JobState::Queued { since: now, served };
    }

    /// How long it has waited in queues by now.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        let present = match self.state {
            JobState::Queued { since, .. } => now.saturating_duration_since(since),
            JobState::Held(_) => Duration::ZERO,
        };
        self.waits.total().saturating_add(present)
    }

    pub(crate) fn hold(&self) -> Option<Hold> {
        match self.state {
            JobState::Held(hold) => Some(hold),
            JobState::Queued { .. } => None,
        }
    }

    /// From now on, and until one resumes the answer, only providers that can resume it for its
    /// present model fit the job.
    pub(crate) fn break_off(&mut self, resumable: Resumable, how: Break) {
        (self.spec.endpoint, self.spec.serve_as) = (resumable.endpoint, resumable.serve_as);
        self.broken_off = Some(how);
        self.resumes += 1;
        self.later = Vec::new();
        self.requeued = 0;
        self.avoided.clear();
        self.waits = Waits::default();
    }

    /// Whether it may be requeued once more.
    pub(crate) fn may_be_requeued(&self, config: &Config) -> bool {
        // The machines that could resume it often fail together, and are back before the job's time
        // is over.
        let most = self.broken_off.map_or(config.max_requeue_count, |_| MAX_REQUEUES_OF_REST);
        self.requeued < most
    }

    /// How much longer it may wait, with a provider or without one.
    pub(crate) fn wait_left(&self, served: bool, config: &Config) -> Duration {
        match self.broken_off {
            Some(_) => config.resume_timeout.saturating_sub(self.waits.total),
            None => self.waits.left(served, config),
        }
    }

    pub(crate) fn id(&self) -> JobId {
        self.spec.id
    }
}

impl Demand<'_> {
    /// The demand if the job left this provider.
    pub(crate) fn after(self, provider: ProviderId) -> Self {
        Self { left: Some(provider), ..self }
    }

    /// Whether the job's own conditions allow this provider.
    pub(crate) fn fits(&self, id: ProviderId, provider: &Provider) -> bool {
        let spec = &self.job.spec;
        spec.size <= provider.max_size
            && spec.serve_as.meets(provider.endpoints)
            && self.route.reaches(provider.distance)
            && spec.pinned.is_none_or(|pinned| pinned == id)
            && self.left != Some(id)
            && !self.avoided.contains(&id)
            && (self.job.broken_off.is_none() || provider.continuing.contains(self.model))
    }
}

/// The targets of a new job after its first.
fn later(spec: &JobSpec) -> Vec<Target> {
    let target = |model: &ModelName, route| Target { model: model.clone(), route };
    let own = spec.fallbacks.iter().map(|model| target(model, spec.route));
    let all = std::iter::once(&spec.model).chain(&spec.fallbacks);
    let clouds = all.filter(|_| spec.clouds).map(|model| target(model, Route::Cloud));
    own.chain(clouds).collect()
}

impl Waits {
    /// How much longer a job may wait, with a provider or without one.
    fn left(&self, served: bool, config: &Config) -> Duration {
        let of_kind = if served {
            config.busy_timeout.saturating_sub(self.busy)
        } else {
            config.queue_timeout.saturating_sub(self.absent)
        };
        let longest = config.queue_timeout.saturating_add(config.busy_timeout);
        of_kind.min(longest.saturating_sub(self.total))
    }

    pub(crate) fn total(&self) -> Duration {
        self.total
    }

    fn add(&mut self, wait: Duration, served: bool) {
        let of_kind = if served { &mut self.busy } else { &mut self.absent };
        *of_kind = of_kind.saturating_add(wait);
        self.total = self.total.saturating_add(wait);
    }
}

impl Hold {
    pub(crate) fn begun(self) -> bool {
        !matches!(self.phase, Phase::Given | Phase::Unbegun)
    }
}
