//! Which of its models a job is asked of: at the door, when it falls back, and while it waits.

use base::ProviderId;
use dispatch::{Distance, Ending, JobSpec, Route};

use super::{
    known::{JobRecord, JobState, Peer, Standing},
    oracle::Oracle,
};

/// The possible outcomes of asking for a model.
#[derive(Debug, PartialEq, Eq)]
enum Outlook {
    Now,
    Later,
    Never(Ending),
}

impl Oracle {
    /// A job that nobody has begun cannot be had of its model.
    pub(crate) fn fall_back(&mut self, mut job: JobRecord, ending: Ending) {
        let ending = job.broken_off.clone().unwrap_or(ending);
        let mut busy = matches!(ending, Ending::QueueFull { .. });
        while !self.stopping && if busy { job.go_on_while_busy() } else { job.go_on() } {
            self.fell_back += 1;
            if self.outlook(&job) != Outlook::Now {
                continue;
            }
            if job.attempt > 0 {
                return self.queue(job);
            }
            if let Some(refused) = self.take_in(job) {
                (job, busy) = (refused, true);
            } else {
                return;
            }
        }
        self.owe_end(job.spec.id, ending);
    }

    /// Nobody goes on waiting for a model that nobody has for it, when a later one is served.
    pub(crate) fn go_on(&mut self) {
        for id in self.queued() {
            let better = self.jobs.get(&id).and_then(|job| self.better_served(job));
            if let Some(mut better) = better {
                better.wait_from(self.now, true);
                self.unqueue(id, false);
                self.enter_queue(better);
                self.moved += 1;
            }
        }
    }

    /// The waiting job as it asks for the first later model that is served, if nobody is left for
    /// its present one.
    pub(crate) fn better_served(&self, job: &JobRecord) -> Option<JobRecord> {
        let mut later = job.clone();
        while self.nobody_is_left(job) && later.go_on() {
            if self.outlook(&later) == Outlook::Now {
                return Some(later);
            }
        }
        None
    }

    /// Whether what becomes of this job hangs on a provider of which it is not known whether it may
    /// be given anything.
    pub(crate) fn cannot_tell(&self, spec: &JobSpec) -> bool {
        let models = std::iter::once(&spec.model).chain(&spec.fallbacks);
        let mut moved = models.map(|model| JobSpec { model: model.clone(), ..spec.clone() });
        self.is_unsure() && moved.any(|spec| !self.has_room(&spec))
    }

    /// Whether a job would go elsewhere if its provider failed it now.
    pub(crate) fn has_alternative(&self, job: &JobRecord, by: ProviderId) -> bool {
        let found = self.has_other_provider(job, by) || self.has_served_fallback(job);
        found && !self.stopping
    }

    pub(crate) fn has_other_provider(&self, job: &JobRecord, by: ProviderId) -> bool {
        let mut moved = job.clone();
        moved.avoided.push(by);
        self.may_be_requeued(job) && !self.nobody_is_left(&moved)
    }

    pub(crate) fn has_served_fallback(&self, job: &JobRecord) -> bool {
        let (mut moved, mut found) = (job.clone(), false);
        while moved.go_on() {
            found |= self.outlook(&moved) == Outlook::Now;
        }
        found
    }

    /// Whether there is such a provider.
    pub(crate) fn is_unsure(&self) -> bool {
        self.peers.iter().any(|peer| peer.standing == Standing::Unsure || peer.dozes)
    }

    /// The job as it asks for the first of its models that is served, or else can be waited for.
    pub(crate) fn first_model(&mut self, job: &JobRecord) -> Result<JobRecord, Ending> {
        let mut stages = vec![job.clone()];
        while let Some(mut next) = stages.last().cloned()
            && next.go_on()
        {
            stages.push(next);
        }
        for wanted in [Outlook::Now, Outlook::Later] {
            let mut found = stages.iter().position(|stage| self.outlook(stage) == wanted);
            if wanted == Outlook::Later && !stages.iter().any(|stage| self.somebody_own_has(stage))
            {
                let cloud = |stage: &JobRecord| stage.at_clouds && self.outlook(stage) == wanted;
                found = stages.iter().position(cloud).or(found);
            }
            if let Some(position) = found {
                self.fell_back += position as u64;
                return Ok(stages.swap_remove(position));
            }
        }
        let Outlook::Never(ending) = self.outlook(job) else { return Ok(job.clone()) };
        // It may be the model of a cloud alone.
        let of_cloud = |stage: &&JobRecord| stage.at_clouds && stage.spec.model == job.spec.model;
        let cloud = stages.iter().find(of_cloud).map(|stage| self.outlook(stage));
        match (ending, cloud) {
            (Ending::NoProvider, Some(Outlook::Never(ending))) => Err(ending),
            (ending, _) => Err(ending),
        }
    }

    /// A job that nobody had yet is assigned or waits; it is given back if there is no room.
    pub(crate) fn take_in(&mut self, mut job: JobRecord) -> Option<JobRecord> {
        if self.peers.iter().any(|peer| self.may_take(peer, &job)) {
            job.place = JobState::AtTheDoor;
            self.jobs.insert(job.spec.id, job);
        } else if self.has_room(&job.spec) {
            self.queue(job);
        } else {
            return Some(job);
        }
        None
    }

    fn outlook(&self, job: &JobRecord) -> Outlook {
        let spec = &job.spec;
        let mut meant: Vec<_> = self.peers.iter().collect();
        meant.retain(|peer| peer.serves(&spec.scope, &spec.model));
        let to_clouds = spec.clouds && spec.route != Route::LocalOnly;
        let passed = |peer: &&Peer| to_clouds && peer.offer.distance == Distance::Cloud;
        let counts = |peer: &&&Peer| !peer.is_in_reach(job) && !passed(peer);
        let elsewhere = job.at_clouds || meant.iter().any(|peer| counts(&peer));
        meant.retain(|peer| peer.is_in_reach(job));
        if let Some(pinned) = spec.pinned {
            meant.retain(|peer| peer.id == pinned && !peer.draining);
        }
        if meant.is_empty() {
            let wait = spec.known && spec.pinned.is_none() && !elsewhere;
            return if wait { Outlook::Later } else { Outlook::Never(Ending::NoProvider) };
        }
        meant.retain(|peer| spec.serve_as.iter().any(|shape| peer.offer.endpoints.contains(shape)));
        let Some(limit) = meant.iter().map(|peer| peer.offer.max_size).max() else {
            return Outlook::Never(Ending::NotServed);
        };
        if limit < spec.size {
            return Outlook::Never(Ending::TooLarge { limit });
        }
        let active = |peer: &&Peer| !peer.is_out() && peer.offer.max_size >= spec.size;
        if meant.into_iter().any(|peer| active(&peer)) { Outlook::Now } else { Outlook::Later }
    }

    /// Whether somebody of one's own is connected that has the model of this stage.
    fn somebody_own_has(&self, stage: &JobRecord) -> bool {
        let has = |peer: &Peer| {
            peer.serves(&stage.spec.scope, &stage.spec.model) && peer.is_in_reach(stage)
        };
        !stage.at_clouds && self.peers.iter().any(has)
    }

    fn has_room(&self, spec: &JobSpec) -> bool {
        let queued: Vec<_> = self.queued().iter().filter_map(|id| self.jobs.get(id)).collect();
        let same = |job: &&&JobRecord| job.spec.scope == spec.scope && job.spec.model == spec.model;
        let here: Vec<_> = queued.iter().filter(same).collect();
        let of_key = here.iter().filter(|job| job.spec.key == spec.key).count();
        let bytes: u64 = queued.iter().map(|job| job.spec.size).sum();
        let mut queues: Vec<_> =
            queued.iter().map(|job| (&job.spec.scope, &job.spec.model)).collect();
        queues.sort();
        queues.dedup();
        here.len() < self.config.max_queue_len
            && of_key < self.config.max_queue_len.div_ceil(2)
            && bytes + spec.size <= self.config.max_queued_bytes
            && (!here.is_empty() || queues.len() < self.config.max_queues)
    }

    pub(crate) fn nobody_is_left(&self, job: &JobRecord) -> bool {
        !self.peers.iter().any(|peer| !peer.is_out() && peer.fits(job))
    }
}
