//! The rules that each output must satisfy, and those that must hold after each call.

use std::time::{Duration, Instant};

use base::{Endpoints, JobId, ModelName, ProviderId};
use dispatch::{CancelReason, Config, Dispatcher, Distance, Ending, Output, Wait};

use super::{
    known::{BackendState, HeldJob, JobRecord, JobState, LineName, Peer, Standing},
    oracle::Oracle,
};

pub(crate) type Verdict = Result<(), String>;

impl Oracle {
    /// Follows one output. An error says which rule it breaks.
    pub(crate) fn output(&mut self, output: &Output) -> Verdict {
        let broken = |rule: &str| Err(format!("{rule}: {output:?}"));
        if self.settle(output)? {
            return Ok(());
        }
        match output {
            Output::Assign { job, provider, model, endpoints, attempt } => {
                self.waited_too_long(*job, *provider, model)?;
                let job = self.assigned(*job, *provider, *attempt)?;
                let shapes = self.peer(*provider).map(|peer| peer.offer.endpoints);
                ensure(job == *model && shapes == Some(*endpoints), || {
                    format!("asked for {job} of {shapes:?}, not {output:?}")
                })
            }
            Output::AskProgress { job } => self.ask_progress(*job),
            Output::End {
                job,
                ending:
                    ending @ (Ending::QueueTimeout
                    | Ending::BusyTimeout { .. }
                    | Ending::ProviderLost
                    | Ending::ProviderFailed
                    | Ending::IdleTimeout),
            } => self.queue_timed_out(*job, ending),
            Output::Cancel { job, provider, reason }
                if self.is_overdue(*job, *provider, *reason) =>
            {
                self.moved_on(*job, *provider)
            }
            Output::Cancel { job, provider, reason: CancelReason::Timeout } => {
                self.request_timed_out(*job, *provider)
            }
            Output::Cancel {
                job,
                provider,
                reason: reason @ (CancelReason::GracefulShutdown | CancelReason::ServerShutdown),
            } => self.drained(*job, *provider, *reason),
            _ => broken("nothing leads to this"),
        }
    }

    /// The load of a provider.
    pub(crate) fn load(&self, peer: &Peer) -> u32 {
        let held = self.held_by(peer.id).len() as u32;
        peer.reported.max(held) + peer.lingering.len() as u32
    }

    /// How long a provider may go on with a cancelled job at most.
    pub(crate) fn lingering_ends(&mut self) {
        let (now, mut ended) = (self.now, 0);
        for peer in &mut self.peers {
            let before = peer.lingering.len();
            peer.lingering.retain(|_, until| *until > now);
            ended += before - peer.lingering.len();
        }
        self.due_together = ended > 1;
    }

    /// Rests that are over by now turn into trials.
    pub(crate) fn rests_end(&mut self) {
        let now = self.now;
        for peer in &mut self.peers {
            if matches!(peer.standing, Standing::Resting(until) if until <= now) {
                peer.standing = Standing::Trial(None);
            }
        }
    }

    /// The rules that must hold when a call and its outputs are over.
    /// After a deadline, nothing that was due may be left.
    pub(crate) fn check(&self, dispatcher: &Dispatcher, deadline: bool) -> Verdict {
        if let Some(owed) = self.owed.first() {
            return Err(format!("missing: {owed:?}"));
        }
        self.check_nobody_waits_in_vain()?;
        self.check_lending(dispatcher)?;
        self.check_providers(dispatcher)?;
        self.check_queues(dispatcher)?;
        let (told, own) = (dispatcher.poll_timeout(), self.next_deadline());
        // A look may be in vain: the job for which it was to be is gone.
        let early = told.is_some_and(|(at, why)| {
            why == Dispatcher::LOAD_LOOK && own.is_none_or(|own| at < own)
        });
        let told = told.map(|(at, _)| at);
        ensure(early || told == own, || format!("next deadline {told:?}, not {own:?}"))?;
        let own = told.filter(|_| early).or(own);
        let ahead = own.is_none_or(|at| if deadline { at > self.now } else { at >= self.now });
        ensure(ahead, || "a deadline in the past".to_owned())
    }

    /// Whether the provider may be given the job now.
    pub(crate) fn may_take(&self, peer: &Peer, job: &JobRecord) -> bool {
        self.allowed(peer, job, false)
    }

    /// The same; `lenient` where it cannot be known.
    fn allowed(&self, peer: &Peer, job: &JobRecord, lenient: bool) -> bool {
        let waits = || self.waits_until(peer, job).is_some();
        let may_tell = !(lenient && self.is_unsure_of_loads());
        self.is_open(peer, job, lenient) && !(may_tell && waits())
    }

    /// The same, if the job did not wait for others rather than have its model loaded.
    pub(crate) fn is_open_to(&self, peer: &Peer, job: &JobRecord) -> bool {
        self.is_open(peer, job, false)
    }

    fn is_open(&self, peer: &Peer, job: &JobRecord, lenient: bool) -> bool {
        if job.spec.lent {
            return self.has_lent_slot(peer, job);
        }
        let awake = peer.throttle > 0 && peer.may_be_tried();
        let free = awake && self.occupied(peer) < peer.capacity();
        let trusted = match peer.standing {
            Standing::Healthy | Standing::Trial(None) => true,
            Standing::Unsure => lenient,
            Standing::Resting(_) | Standing::Trial(Some(_)) => false,
        };
        let able = |peer: &Peer| !peer.draining && peer.fits(job);
        let healthy =
            |peer: &Peer| !peer.is_out() && able(peer) && peer.standing == Standing::Healthy;
        !self.stopping && able(peer) && free && (trusted || !self.peers.iter().any(healthy))
    }

    /// Whether the output was owed.
    fn settle(&mut self, output: &Output) -> Result<bool, String> {
        let same = |owed: &Output| match (owed, output) {
            (
                Output::End { job: a, ending: Ending::QueueFull { .. } },
                Output::End { job: b, ending: Ending::QueueFull { retry_after } },
            ) => a == b && self.is_honest(*retry_after),
            _ => owed == output,
        };
        let Some(position) = self.owed.iter().position(same) else { return Ok(false) };
        self.owed.remove(position);
        self.broken_off += u64::from(matches!(output, Output::BrokenOff { .. }));
        if let Output::End { job, .. } = output {
            self.ended += 1;
            let about = |owed: &Output| matches!(owed, Output::Cancel { job: id, .. } if id == job);
            ensure(!self.owed.iter().any(about), || format!("{job} ended before its cancel"))?;
        }
        Ok(true)
    }

    fn is_honest(&self, retry_after: Duration) -> bool {
        (Duration::from_secs(1)..=self.config.queue_timeout).contains(&retry_after)
    }

    /// Returns the model that the job asks for.
    fn assigned(&mut self, id: JobId, by: ProviderId, attempt: u32) -> Result<ModelName, String> {
        let job = self.known(id)?;
        ensure(job.attempt == attempt, || format!("{id} is at attempt {}", job.attempt))?;
        ensure(!matches!(job.place, JobState::Held(_)), || format!("{id} is at a provider"))?;
        self.check_standing(id, by)?;
        let held = self.held_by(by).len();
        let (job, peer) = self.pair(id, by)?;
        // It may have more, from before its capacity was lowered; it is not given more.
        ensure(held < peer.capacity() as usize, || format!("{by} has {held} jobs already"))?;
        let model = job.spec.model.clone();
        let peer_is_cloud = peer.offer.distance == Distance::Cloud;
        let loads_after_a_wait =
            matches!(job.place, JobState::Queued(..)) && peer.would_load(&model).is_some();
        match job.place {
            // Only the pinned one may have it, which was seen.
            _ if job.spec.lent => {}
            JobState::AtTheDoor => self.check_choice(id, by)?,
            // Whether others had to wait depends on whether a provider was asleep already, or its backend tried.
            _ if self.is_unsure_of_loads() => {}
            _ if peer.standing == Standing::Healthy => self.check_is_next(job, peer)?,
            _ => self.check_order(job, peer)?,
        }
        let told = |owed: &Output| matches!(owed, Output::BrokenOff { job, .. } if *job == id);
        ensure(!self.owed.iter().any(told), || format!("{id} goes on before its break is told"))?;
        self.impatient += u64::from(loads_after_a_wait);
        self.clouded += u64::from(peer_is_cloud);
        self.give(id, by);
        Ok(model)
    }

    /// A job whose time in queues is over is assigned to who is free for a fallback, and for none
    /// before it.
    fn waited_too_long(&mut self, id: JobId, by: ProviderId, model: &ModelName) -> Verdict {
        let clouds = self.peer(by).is_some_and(|peer| peer.offer.distance == Distance::Cloud);
        let is_there = |job: &JobRecord| job.spec.model == *model && job.at_clouds == clouds;
        let job = self.known(id)?;
        let JobState::Queued(_, served) = job.place else { return Ok(()) };
        if !self.is_due(job) || is_there(job) {
            return Ok(());
        }
        let Some(mut job) = self.unqueue(id, false) else { return Ok(()) };
        job.count_wait(self.now);
        job.place = JobState::AtTheDoor;
        while !is_there(&job) {
            let before = job.spec.model.clone();
            let more = if served { job.go_on_while_busy() } else { job.go_on() };
            ensure(more, || format!("{id} was never to be asked of {model}"))?;
            self.fell_back += 1;
            let earlier = !is_there(&job) && self.somebody_may_take(&job) && !self.is_unsure();
            ensure(!earlier, || format!("{id}: {:?} after {before:?} is free", job.spec.model))?;
        }
        self.jobs.insert(id, job);
        Ok(())
    }

    pub(crate) fn somebody_may_take(&self, job: &JobRecord) -> bool {
        self.peers.iter().any(|peer| self.may_take(peer, job))
    }

    fn is_due(&self, job: &JobRecord) -> bool {
        self.deadline(job).is_some_and(|at| at <= self.now)
    }

    /// Whether the provider may have the job, once a rest that ends now has ended, if need be.
    fn check_standing(&mut self, id: JobId, by: ProviderId) -> Verdict {
        let now = self.now;
        let (job, peer) = self.pair(id, by)?;
        let as_it_is = self.allowed(peer, job, true);
        let over = matches!(peer.standing, Standing::Resting(until) if until <= now);
        if over {
            let standing = if as_it_is { Standing::Unsure } else { Standing::Trial(None) };
            if let Some(peer) = self.peer_mut(by) {
                peer.standing = standing;
            }
        }
        let (job, peer) = self.pair(id, by)?;
        ensure(self.allowed(peer, job, true), || format!("{by} may not take {id}: {peer:?}"))
    }

    fn give(&mut self, id: JobId, by: ProviderId) {
        let (since, deadline) = (self.now, self.now + self.config.request_timeout);
        let rests = self.rests(by);
        let acknowledged = !self.peer(by).is_some_and(|peer| peer.offer.acknowledges);
        let shapes = self.peer(by).map_or(Endpoints::NONE, |peer| peer.offer.endpoints);
        let Some(mut job) = self.unqueue(id, true) else { return };
        let model = job.spec.model.clone();
        job.attempt += 1;
        job.count_wait(since);
        job.looked |= job.waited >= self.config.queue_timeout;
        let mut held = HeldJob {
            by,
            since,
            begun: false,
            acknowledged,
            is_asked: false,
            deadline,
            rests,
            shapes,
        };
        if !acknowledged {
            held.deadline = self.acknowledgement_deadline(held);
        }
        job.place = JobState::Held(held);
        self.jobs.insert(id, job);
        self.given += 1;
        let given = self.given;
        if let Some(peer) = self.peer_mut(by) {
            peer.note_given(since, &model, id);
            peer.last_given = given;
            peer.reported += 1;
            if peer.standing == Standing::Trial(None) {
                peer.standing = Standing::Trial(Some(id));
            }
        }
    }

    /// Of all that waits, a healthy provider takes what is next for it.
    fn check_is_next(&self, job: &JobRecord, peer: &Peer) -> Verdict {
        let next = self.next_for(peer);
        ensure(next == Some(job.spec.id), || format!("{next:?} was next, not {:?}", job.spec))
    }

    fn next_for(&self, peer: &Peer) -> Option<JobId> {
        let mut lines: Vec<(u64, LineName, Vec<JobId>)> = Vec::new();
        for id in self.queued() {
            let line = self.jobs.get(&id)?.line();
            if lines.iter().all(|(_, name, _)| *name != line) {
                let order = self.in_order(&line);
                let head = order.first().and_then(|id| self.jobs.get(id))?.seq;
                lines.push((head, line, order));
            }
        }
        lines.sort();
        let mut all = lines.into_iter().flat_map(|(_, _, order)| order);
        all.find(|id| self.jobs.get(id).is_some_and(|job| self.may_take(peer, job)))
    }

    /// The jobs of a line as they are offered.
    fn in_order(&self, line: &LineName) -> Vec<JobId> {
        let here = |job: &&JobRecord| job.line() == *line;
        let queued = self.queued();
        let jobs: Vec<_> = queued.iter().filter_map(|id| self.jobs.get(id)).filter(here).collect();
        let mut order: Vec<_> = jobs.iter().filter(|job| job.attempt > 0).collect();
        for key in self.turns.get(line).into_iter().flatten() {
            order.extend(jobs.iter().filter(|job| job.attempt == 0 && job.spec.key == *key));
        }
        order.iter().map(|job| job.spec.id).collect()
    }

    /// Within a line: requeued jobs first, oldest first; then each key's in their order.
    fn check_order(&self, job: &JobRecord, peer: &Peer) -> Verdict {
        let before = |other: &JobRecord| {
            let older = other.seq < job.seq;
            let same_key = other.spec.key == job.spec.key;
            match (other.attempt > 0, job.attempt > 0) {
                (true, true) => older,
                (true, false) => true,
                (false, true) => false,
                (false, false) => older && same_key,
            }
        };
        let passed_over = self.queued().into_iter().find(|id| {
            self.jobs.get(id).is_some_and(|other| {
                other.line() == job.line() && before(other) && self.may_take(peer, other)
            })
        });
        ensure(passed_over.is_none(), || format!("{passed_over:?} comes before {:?}", job.spec.id))
    }

    fn ask_progress(&mut self, id: JobId) -> Verdict {
        let now = self.now;
        match self.jobs.get_mut(&id).map(|job| &mut job.place) {
            Some(JobState::Held(held)) if held.begun && !held.is_asked && held.deadline <= now => {
                held.is_asked = true;
                Ok(())
            }
            place => Err(format!("asked about {id}, which is {place:?}")),
        }
    }

    fn queue_timed_out(&mut self, id: JobId, ending: &Ending) -> Verdict {
        let mut job = self.known(id)?.clone();
        let queued = matches!(job.place, JobState::Queued(..));
        ensure(self.is_due(&job) && queued, || format!("{id} has not waited too long"))?;
        let mut other = job.clone();
        let served = matches!(job.place, JobState::Queued(_, true));
        while if served { other.go_on_while_busy() } else { other.go_on() } {
            ensure(!self.somebody_may_take(&other) || self.is_unsure(), || {
                format!("{other:?} could be served")
            })?;
        }
        job.count_wait(self.now);
        ensure(self.left(&job) == Duration::ZERO, || format!("{id} has time left"))?;
        let own = self.wait_ending(&job);
        ensure(own == *ending, || format!("{ending:?}, not {own:?}"))?;
        self.gave_up_busy += u64::from(matches!(ending, Ending::BusyTimeout { .. }));
        self.unqueue(id, false);
        self.ended += 1;
        Ok(())
    }

    /// How a job ends whose time in queues is over.
    fn wait_ending(&self, job: &JobRecord) -> Ending {
        let able = |peer: &&Peer| !peer.is_out() && peer.fits(job);
        let providers = self.peers.iter().filter(able).count();
        if let Some(ending) = &job.broken_off {
            return ending.clone();
        }
        if !matches!(job.place, JobState::Queued(_, true)) {
            return Ending::QueueTimeout;
        }
        let wait = Wait { providers, ahead: self.ahead(job) };
        Ending::BusyTimeout { waited: job.waited, wait }
    }

    /// How many jobs of its line would be served before a job: requeued ones, then one of each key
    /// in turn.
    fn ahead(&self, job: &JobRecord) -> usize {
        let order = self.in_order(&job.line());
        let jobs: Vec<_> = order.iter().filter_map(|id| self.jobs.get(id)).collect();
        let (mut served, mut waiting): (Vec<_>, Vec<_>) =
            jobs.into_iter().partition(|job| job.attempt > 0);
        let mut turns = self.turns.get(&job.line()).cloned().unwrap_or_default();
        while !waiting.is_empty() {
            let key = turns.remove(0);
            if let Some(next) = waiting.iter().position(|job| job.spec.key == key) {
                served.push(waiting.remove(next));
            }
            turns.push(key);
        }
        served.iter().position(|other| other.spec.id == job.spec.id).unwrap_or(usize::MAX)
    }

    /// Jobs whose fallbacks were looked at in vain while their providers are busy.
    pub(crate) fn looks_are_over(&mut self) {
        let now = self.now;
        for id in self.queued() {
            let Some(job) = self.jobs.get(&id).filter(|job| self.is_due(job)) else { continue };
            let mut counted = job.clone();
            counted.count_wait(now);
            if self.left(&counted) > Duration::ZERO {
                counted.looked = true;
                self.jobs.insert(id, counted);
                self.looked += 1;
            }
        }
    }

    fn request_timed_out(&mut self, id: JobId, by: ProviderId) -> Verdict {
        let now = self.now;
        let due = |held: HeldJob| held.by == by && !held.begun && held.deadline <= now;
        let place = self.known(id)?.place;
        ensure(matches!(place, JobState::Held(held) if due(held)), || {
            format!("{id} has not taken too long")
        })?;
        if let Some((job, held)) = self.release(id) {
            self.note_cancel(by, id);
            match job.broken_off {
                Some(_) => self.not_gone_on_with(job, held),
                None => self.fall_back(job, Ending::RequestTimeout),
            }
            self.fault(held);
            self.retire_if_idle(by, true);
        }
        Ok(())
    }

    fn drained(&mut self, id: JobId, by: ProviderId, reason: CancelReason) -> Verdict {
        let over = self.peer(by).and_then(|peer| peer.grace_end).is_some_and(|at| at <= self.now);
        ensure(over, || format!("the grace of {by} is not over"))?;
        let ends = reason == CancelReason::ServerShutdown;
        ensure(ends == self.stopping, || format!("{reason:?}, stopping: {}", self.stopping))?;
        match self.release(id) {
            Some((_, held)) if held.by == by && ends => self.owe_end(id, Ending::ShuttingDown),
            Some((job, held)) if held.by == by => self.lost(job, held),
            _ => return Err(format!("{id} is not at {by}")),
        }
        self.retire_if_idle(by, false);
        Ok(())
    }

    fn check_nobody_waits_in_vain(&self) -> Verdict {
        for job in self.jobs.values().filter(|job| !matches!(job.place, JobState::Held(_))) {
            if let Some(peer) = self.peers.iter().find(|peer| self.may_take(peer, job)) {
                return Err(format!("{:?} waits, and {peer:?} is free", job.spec));
            }
            if let Some(better) = self.better_served(job) {
                return Err(format!("{:?} waits, and not as {:?}", job.spec, better.spec.model));
            }
        }
        Ok(())
    }

    fn check_providers(&self, dispatcher: &Dispatcher) -> Verdict {
        ensure(dispatcher.providers().count() == self.peers.len(), || "providers".to_owned())?;
        for view in dispatcher.providers() {
            let peer = self.peer(view.id).ok_or("an unknown provider")?;
            let resting = match peer.standing {
                Standing::Resting(until) => Some(until),
                _ => None,
            };
            let held = self.held_by(view.id).len() as u32;
            let told = (view.endpoints, view.distance, view.speed, view.throttle);
            let own = (peer.offer.endpoints, peer.offer.distance, peer.speed(), peer.throttle);
            ensure(told == own, || format!("{view:?} is not {peer:?}"))?;
            let lingering = peer.lingering.len() as u32;
            ensure(view.lingering == lingering, || format!("{view:?} is not {peer:?}"))?;
            let same = (view.in_flight, view.reported_load, view.draining, view.resting_until)
                == (held, peer.reported, peer.draining, resting);
            ensure(same, || format!("{view:?} is not {peer:?}"))?;
        }
        Ok(())
    }

    fn check_queues(&self, dispatcher: &Dispatcher) -> Verdict {
        let queued = self.queued();
        let held = self.jobs.len() - queued.len();
        let counts = (dispatcher.queue_depth(), dispatcher.in_flight(), dispatcher.is_idle());
        let own = (queued.len(), held, self.jobs.is_empty());
        ensure(counts == own, || format!("counts {counts:?}, not {own:?}"))?;
        let mut seen = 0;
        for view in dispatcher.queues() {
            let jobs = queued.iter().filter_map(|id| self.jobs.get(id));
            let here =
                |job: &&JobRecord| job.spec.scope == *view.scope && job.spec.model == *view.model;
            let jobs: Vec<_> = jobs.filter(here).collect();
            let oldest = jobs.iter().map(|job| job.accepted_at).min();
            let same = jobs.len() == view.len && oldest == Some(view.oldest);
            ensure(same, || format!("{view:?} is not {jobs:?}"))?;
            seen += view.len;
        }
        ensure(seen == queued.len(), || "a queue is missing".to_owned())
    }

    fn next_deadline(&self) -> Option<Instant> {
        let jobs = self.jobs.values().filter_map(|job| self.deadline(job));
        let graces = self.peers.iter().filter(|peer| !peer.retired);
        let graces = graces.filter_map(|peer| peer.grace_end);
        let rests = self.peers.iter().filter_map(|peer| match peer.standing {
            Standing::Resting(until) => Some(until),
            _ => None,
        });
        let lingering = self.peers.iter().flat_map(|peer| peer.lingering.values().copied());
        let backends = self.peers.iter().filter_map(|peer| match peer.backend {
            BackendState::Waiting { until, .. } => Some(until),
            _ => None,
        });
        let all = jobs.chain(graces).chain(rests).chain(lingering).chain(backends);
        all.chain(self.next_load()).min()
    }

    fn deadline(&self, job: &JobRecord) -> Option<Instant> {
        match job.place {
            JobState::AtTheDoor => None,
            JobState::Queued(since, served) => {
                let look = self.next_look(job).filter(|_| served);
                Some(since + look.unwrap_or(Duration::MAX).min(self.left(job)))
            }
            JobState::Held(held) => (!held.is_asked).then_some(held.deadline),
        }
    }

    /// How long a job may still wait, from the time that its wait was last counted.
    fn left(&self, job: &JobRecord) -> Duration {
        let Config { queue_timeout, busy_timeout, resume_timeout, .. } = self.config;
        if job.broken_off.is_some() {
            return resume_timeout.saturating_sub(job.waited);
        }
        let of_kind = match job.place {
            JobState::Queued(_, true) => busy_timeout.saturating_sub(job.busy),
            _ => queue_timeout.saturating_sub(job.absent),
        };
        of_kind.min((queue_timeout + busy_timeout).saturating_sub(job.waited))
    }

    /// When a job that has fallbacks left looks at them, from that time on.
    fn next_look(&self, job: &JobRecord) -> Option<Duration> {
        let every = self.config.queue_timeout;
        let look = if job.looked { every } else { every.saturating_sub(job.waited) };
        job.may_go_on_while_busy().then_some(look)
    }

    pub(crate) fn pair(&self, id: JobId, by: ProviderId) -> Result<(&JobRecord, &Peer), String> {
        let peer = self.peer(by).ok_or_else(|| format!("{by} is not connected"))?;
        Ok((self.known(id)?, peer))
    }

    fn known(&self, id: JobId) -> Result<&JobRecord, String> {
        self.jobs.get(&id).ok_or_else(|| format!("{id} is not known"))
    }
}

pub(crate) fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(otherwise()) }
}
