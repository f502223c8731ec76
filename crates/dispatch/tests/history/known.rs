//! The plain model's knowledge of a provider and of a job.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use base::{Endpoints, JobId, ModelName, ProviderId, Scope};
use dispatch::{Distance, Ending, JobSpec, Offer, Resumable, Route};

use super::memory::{OnDisk, told};

/// The known facts about a provider.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) id: ProviderId,
    pub(crate) offer: Offer,
    /// The models that it does not have in memory.
    pub(crate) memory: Vec<OnDisk>,
    /// The models with which it goes on with others' answers.
    pub(crate) continuing: Vec<ModelName>,
    pub(crate) reported: u32,
    /// How many of its slots are lent.
    pub(crate) lent: u32,
    pub(crate) draining: bool,
    pub(crate) retired: bool,
    pub(crate) grace_end: Option<Instant>,
    pub(crate) standing: Standing,
    pub(crate) faults: u32,
    pub(crate) rests: u32,
    pub(crate) last_rest: Option<Duration>,
    /// Jobs cancelled lately, and when the last was.
    pub(crate) canceled: Option<(u32, Instant)>,
    /// Cancelled jobs that it may be going on with, and until when at the latest.
    pub(crate) lingering: BTreeMap<JobId, Instant>,
    /// How fast it says it is.
    pub(crate) told: Option<u32>,
    /// How fast its answers were, on the average.
    pub(crate) measured: Option<i64>,
    pub(crate) throttle: u8,
    /// The number of the last assignment that was its; 0 for none.
    pub(crate) last_given: u64,
    pub(crate) backend: BackendState,
    /// The last wait for its backend, since that was there.
    pub(crate) last_wait: Option<Duration>,
    /// Whether it has said nothing since it missed an acknowledgement.
    pub(crate) asleep: bool,
    /// Whether it misses one at this very moment.
    pub(crate) dozes: bool,
}

/// The known facts about a provider's backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendState {
    Ready,
    /// It took no requests; `away`: nobody was there, rather than busy with loading.
    Waiting {
        away: bool,
        until: Instant,
    },
    /// It may be tried.
    Trying {
        away: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Healthy,
    Resting(Instant),
    Trial(Option<JobId>),
    /// On trial, and whether the trial job is out depends on which of two deadlines of the same
    /// moment came first.
    Unsure,
}

#[derive(Debug, Clone)]
pub(crate) struct JobRecord {
    pub(crate) spec: JobSpec,
    pub(crate) seq: u64,
    pub(crate) accepted_at: Instant,
    /// How long it waited without a provider, since it last waited with one.
    pub(crate) absent: Duration,
    /// How long it waited for providers that were busy.
    pub(crate) busy: Duration,
    /// How long it waited in all.
    pub(crate) waited: Duration,
    /// Whether it has looked for a fallback while its providers were busy.
    pub(crate) looked: bool,
    /// How often it was assigned.
    pub(crate) attempt: u32,
    /// How often it was requeued for its present model.
    pub(crate) requeues: u32,
    pub(crate) avoided: Vec<ProviderId>,
    /// The models that it may go on to, and whether to those of clouds.
    pub(crate) later: Vec<(ModelName, bool)>,
    /// Whether only clouds may have it now.
    pub(crate) at_clouds: bool,
    /// How others may go on with its answer, and whether its provider could have gone on with another's.
    pub(crate) resumable: Option<Resumable>,
    pub(crate) awaits: bool,
    /// How it ends if nobody goes on with its answer, which has broken off.
    pub(crate) broken_off: Option<Ending>,
    pub(crate) resumes: u32,
    pub(crate) place: JobState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobState {
    /// Just submitted, and somebody is free for it.
    AtTheDoor,
    /// Since when, and whether a provider is there that could serve it.
    Queued(Instant, bool),
    Held(HeldJob),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldJob {
    pub(crate) by: ProviderId,
    pub(crate) since: Instant,
    pub(crate) begun: bool,
    /// Whether its provider has acknowledged it, or never does that.
    pub(crate) acknowledged: bool,
    pub(crate) is_asked: bool,
    /// When its acknowledgement, request or idle time-out is.
    pub(crate) deadline: Instant,
    pub(crate) rests: u32,
    /// The endpoints that its provider served when it was given the job.
    pub(crate) shapes: Endpoints,
}

/// A scope, a model and whom its jobs are pinned to.
pub(crate) type LineName = (Scope, ModelName, Option<ProviderId>);

impl JobRecord {
    pub(crate) fn new(spec: &JobSpec, seq: u64, now: Instant) -> Self {
        Self {
            spec: spec.clone(),
            seq,
            accepted_at: now,
            absent: Duration::ZERO,
            busy: Duration::ZERO,
            waited: Duration::ZERO,
            looked: false,
            attempt: 0,
            requeues: 0,
            avoided: Vec::new(),
            later: later(spec),
            at_clouds: false,
            resumable: None,
            awaits: false,
            broken_off: None,
            resumes: 0,
            place: JobState::AtTheDoor,
        }
    }

    pub(crate) fn line(&self) -> LineName {
        (self.spec.scope.clone(), self.spec.model.clone(), self.spec.pinned)
    }

    /// Counts its wait so far, if it is in a queue.
    pub(crate) fn count_wait(&mut self, now: Instant) {
        let JobState::Queued(since, served) = self.place else { return };
        let wait = now - since;
        self.waited += wait;
        if served {
            self.busy += wait;
        } else {
            self.absent += wait;
        }
        self.place = JobState::Queued(now, served);
    }

    /// Waits from now on with a provider, or without one.
    pub(crate) fn wait_from(&mut self, now: Instant, served: bool) {
        self.count_wait(now);
        if served {
            self.absent = Duration::ZERO;
        }
        self.place = JobState::Queued(now, served);
    }

    /// The same, unless that is the step from one's own machines to clouds.
    pub(crate) fn go_on_while_busy(&mut self) -> bool {
        self.may_go_on_while_busy() && self.go_on()
    }

    pub(crate) fn may_go_on_while_busy(&self) -> bool {
        self.later.first().is_some_and(|(_, clouds)| *clouds == self.at_clouds)
    }

    /// Asks for the next of its models, with nothing held against anybody.
    pub(crate) fn go_on(&mut self) -> bool {
        if self.later.is_empty() {
            return false;
        }
        (self.spec.model, self.at_clouds) = self.later.remove(0);
        self.requeues = 0;
        self.avoided = Vec::new();
        true
    }
}

/// All own models first, then all once more at clouds.
fn later(spec: &JobSpec) -> Vec<(ModelName, bool)> {
    if spec.lent {
        return Vec::new();
    }
    let mut later: Vec<_> = spec.fallbacks.iter().map(|model| (model.clone(), false)).collect();
    if spec.clouds && spec.route != Route::LocalOnly {
        later.push((spec.model.clone(), true));
        later.extend(spec.fallbacks.iter().map(|model| (model.clone(), true)));
    }
    later
}

impl Peer {
    pub(crate) fn new(now: Instant, id: ProviderId, offer: &Offer) -> Self {
        Self {
            id,
            offer: offer.clone(),
            memory: told(now, &[], &offer.unloaded),
            continuing: Vec::new(),
            reported: offer.load,
            lent: 0,
            draining: false,
            retired: false,
            grace_end: None,
            standing: Standing::Healthy,
            faults: 0,
            rests: 0,
            last_rest: None,
            canceled: None,
            lingering: BTreeMap::new(),
            told: None,
            measured: None,
            throttle: 100,
            last_given: 0,
            backend: BackendState::Ready,
            last_wait: None,
            asleep: false,
            dozes: false,
        }
    }

    /// Whether it counts as no provider.
    pub(crate) fn is_out(&self) -> bool {
        use BackendState::{Trying, Waiting};
        let away = matches!(self.backend, Waiting { away: true, .. } | Trying { away: true });
        self.draining || away
    }

    pub(crate) fn may_be_tried(&self) -> bool {
        !self.asleep && !matches!(self.backend, BackendState::Waiting { .. })
    }

    pub(crate) fn serves(&self, scope: &Scope, model: &ModelName) -> bool {
        let offered = |name: &ModelName| name == model || name.as_str() == "*";
        self.offer.scope == *scope && self.offer.models.iter().any(offered)
    }

    pub(crate) fn fits(&self, job: &JobRecord) -> bool {
        self.serves(&job.spec.scope, &job.spec.model)
            && job.spec.size <= self.offer.max_size
            && job.spec.serve_as.iter().any(|shape| self.offer.endpoints.contains(shape))
            && self.is_in_reach(job)
            && job.spec.pinned.is_none_or(|pinned| pinned == self.id)
            && !job.avoided.contains(&self.id)
            && (job.broken_off.is_none() || self.continuing.contains(&job.spec.model))
    }

    pub(crate) fn is_in_reach(&self, job: &JobRecord) -> bool {
        match self.offer.distance {
            Distance::Cloud => job.at_clouds,
            Distance::Here | Distance::Fellow => !job.at_clouds,
            _ => !job.at_clouds && job.spec.route != Route::LocalOnly,
        }
    }

    /// A whole answer took it this long.
    pub(crate) fn took(&mut self, time: Duration, tokens: Option<u64>) {
        let Some(tokens) = tokens.filter(|tokens| *tokens > 7) else { return };
        let new = tokens as i64 * 1_000_000 / (time.as_millis() as i64).max(1);
        self.measured = Some(self.measured.map_or(new, |old| old + (new - old) / 4));
    }

    pub(crate) fn speed(&self) -> Option<u32> {
        self.measured.map(|speed| speed as u32).or(self.told)
    }

    /// A load above the known one is put down to cancelled jobs first.
    pub(crate) fn report(&mut self, load: u32, now: Instant) {
        let known = self.reported.min(load);
        let above = load - known;
        self.reported = known + above.saturating_sub(self.canceled_lately(now));
    }

    pub(crate) fn canceled_lately(&self, now: Instant) -> u32 {
        match self.canceled {
            Some((count, last)) if now < last + Duration::from_secs(1) => count,
            _ => 0,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        let least = u32::from(!self.offer.borrowed);
        self.offer.max_concurrent.max(least)
    }
}
