//! A job that has been accepted and has not ended.

use std::time::{Duration, Instant};

use base::{Endpoints, JobId, ModelName, ProviderId};

use crate::{input::JobSpec, provider::Provider};

#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) spec: JobSpec,
    /// Its place in the order of acceptance, which is its age; kept when it is requeued.
    pub(crate) seq: u64,
    pub(crate) accepted_at: Instant,
    /// How long it has waited in queues, the present wait not counted.
    pub(crate) waited: Duration,
    /// How often it was assigned.
    pub(crate) assigned: u32,
    /// How often it was requeued for its present model, tries that were not served not counted.
    pub(crate) requeued: u32,
    /// How often a provider turned out not to serve the endpoint that it was asked for.
    pub(crate) unserved: u32,
    /// How many of its fallbacks it has gone on to, or passed over.
    pub(crate) fallen_back: usize,
    /// Who failed or declined it, asked for its present model. At most one more than the requeues
    /// a job may have.
    pub(crate) avoided: Vec<ProviderId>,
    pub(crate) state: JobState,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum JobState {
    /// In its queue, this time since then.
    Queued { since: Instant },
    /// At a provider.
    Held(Hold),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) provider: ProviderId,
    pub(crate) since: Instant,
    /// The endpoints that the provider was known to serve when it got the job.
    pub(crate) endpoints: Endpoints,
    /// How often the provider had gone to rest before it was given the job.
    pub(crate) rests: u32,
    pub(crate) phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No head yet: it may move to another provider.
    Unbegun,
    /// The answer has begun.
    Begun,
    /// It has begun, and the driver was asked when it last moved.
    Asked,
}

impl Job {
    pub(crate) fn new(spec: JobSpec, seq: u64, now: Instant) -> Self {
        Self {
            spec,
            seq,
            accepted_at: now,
            waited: Duration::ZERO,
            assigned: 0,
            requeued: 0,
            unserved: 0,
            fallen_back: 0,
            avoided: Vec::new(),
            state: JobState::Queued { since: now },
        }
    }

    /// Whether the provider, as far as it is up to this job, may have it.
    pub(crate) fn fits(&self, id: ProviderId, provider: &Provider) -> bool {
        self.spec.size <= provider.max_size
            && self.spec.serve_as.meets(provider.endpoints)
            && self.spec.route.reaches(provider.distance)
            && self.spec.pinned.is_none_or(|pinned| pinned == id)
            && !self.avoided.contains(&id)
    }

    /// Goes on to the next of its models, for which nobody is avoided yet. Whether there is one.
    pub(crate) fn next_model(&mut self) -> bool {
        let Some(model) = self.fallbacks_left().first() else { return false };
        self.spec.model = model.clone();
        self.fallen_back += 1;
        self.requeued = 0;
        self.avoided.clear();
        true
    }

    /// Goes on by this many models.
    pub(crate) fn go_on(&mut self, models_on: usize) {
        (0..models_on).for_each(|_| _ = self.next_model());
    }

    /// The models that it may yet go on to.
    pub(crate) fn fallbacks_left(&self) -> &[ModelName] {
        self.spec.fallbacks.get(self.fallen_back..).unwrap_or_default()
    }

    pub(crate) fn hold(&self) -> Option<Hold> {
        match self.state {
            JobState::Held(hold) => Some(hold),
            JobState::Queued { .. } => None,
        }
    }

    pub(crate) fn id(&self) -> JobId {
        self.spec.id
    }
}

impl Hold {
    pub(crate) fn begun(self) -> bool {
        self.phase != Phase::Unbegun
    }
}
