//! The dispatcher's rules once more, plain and slow: lists that are searched from end to end.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use base::{JobId, KeyId, ProviderId};
use dispatch::{
    BlockedOn, CancelReason, Config, Ending, Input, JobSpec, Offer, Output, Resumable, Verdict,
};

use super::known::{HeldJob, JobRecord, JobState, LineName, Peer, Standing};

#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) config: Config,
    pub(crate) now: Instant,
    pub(crate) peers: Vec<Peer>,
    pub(crate) jobs: BTreeMap<JobId, JobRecord>,
    /// The keys of each line, whose turn is next first.
    pub(crate) turns: BTreeMap<LineName, Vec<KeyId>>,
    /// The outputs that must come before the call is over.
    pub(crate) owed: Vec<Output>,
    pub(crate) ended: u64,
    pub(crate) accepted: u64,
    pub(crate) fell_back: u64,
    pub(crate) moved: u64,
    pub(crate) unserved: u64,
    pub(crate) overloaded: u64,
    pub(crate) revoked: u64,
    pub(crate) narrowed: u64,
    pub(crate) tried: u64,
    pub(crate) ceased: u64,
    pub(crate) flipped: u64,
    pub(crate) looked: u64,
    pub(crate) gave_up_busy: u64,
    pub(crate) unready: u64,
    pub(crate) woken: u64,
    pub(crate) kept: u64,
    pub(crate) clouded: u64,
    /// Jobs that waited for a provider although another was free, and jobs that were given to one that
    /// loads their model after a wait.
    pub(crate) patient: u64,
    pub(crate) impatient: u64,
    /// Fellows' jobs that had a lent slot, and those that had none.
    pub(crate) lent: u64,
    pub(crate) not_lent: u64,
    /// Answers that broke off and waited for another provider, and those that one went on with.
    pub(crate) broken_off: u64,
    pub(crate) resumed: u64,
    /// How many assignments there were.
    pub(crate) given: u64,
    /// How often somebody slow was left out since one was tried again, if that is certain.
    pub(crate) left_out: Option<u32>,
    pub(crate) stopping: bool,
    /// Whether backends are tried again at this deadline, or several cancelled jobs end. What else is due may come
    /// before that, or after.
    pub(crate) due_together: bool,
}

impl Oracle {
    pub(crate) fn new(config: Config, now: Instant) -> Self {
        Self {
            config,
            now,
            peers: Vec::new(),
            jobs: BTreeMap::new(),
            turns: BTreeMap::new(),
            owed: Vec::new(),
            ended: 0,
            accepted: 0,
            fell_back: 0,
            moved: 0,
            unserved: 0,
            overloaded: 0,
            revoked: 0,
            narrowed: 0,
            tried: 0,
            ceased: 0,
            flipped: 0,
            looked: 0,
            gave_up_busy: 0,
            unready: 0,
            woken: 0,
            kept: 0,
            clouded: 0,
            patient: 0,
            impatient: 0,
            lent: 0,
            not_lent: 0,
            broken_off: 0,
            resumed: 0,
            given: 0,
            left_out: Some(0),
            stopping: false,
            due_together: false,
        }
    }

    /// Follows an input, up to what it allows and demands.
    pub(crate) fn input(&mut self, input: &Input) {
        let now = self.now;
        match input {
            Input::Join { provider, offer } => self.join(*provider, offer),
            Input::Models { provider, models, load } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.offer.models.clone_from(models);
                    peer.report(*load, now);
                }
                self.heard(*provider);
                self.backend_is_there(*provider);
            }
            Input::Continues { provider, models } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.continuing.clone_from(models);
                }
                self.note_awaited(*provider, models);
            }
            Input::Unloaded { provider, models } => self.memory_of(*provider, models),
            Input::Load { provider, load } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.report(*load, now);
                }
                self.heard(*provider);
            }
            Input::Endpoints { provider, endpoints } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.offer.endpoints = *endpoints;
                }
            }
            Input::Capacity { provider, max_concurrent } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.offer.max_concurrent = *max_concurrent;
                }
            }
            Input::Lend { provider, slots } => self.lend(*provider, *slots),
            Input::Moved { provider, distance } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.offer.distance = *distance;
                }
            }
            Input::Condition { provider, speed, throttle } => {
                if let Some(peer) = self.peer_mut(*provider) {
                    peer.told = *speed;
                    peer.throttle = *throttle.min(&100);
                }
            }
            Input::Drain { provider, grace } => self.drain(*provider, *grace),
            Input::Leave { provider, .. } => self.leave(*provider),
            Input::Submit(spec) => self.submit(spec),
            Input::Acknowledged { job, provider } => self.acknowledged(*job, *provider),
            Input::Begun { job, resumable } => self.begun(*job, *resumable),
            Input::Progress { job, at, waiting } => self.progress(*job, *at, *waiting),
            // In no history: a test of its own has it.
            Input::Complete { .. } => {}
            Input::Finished { job, provider, verdict, tokens } => {
                self.finish(*job, *provider, *verdict, *tokens);
            }
            Input::Ceased { job, provider } => {
                let peer = self.peer_mut(*provider);
                let was = peer.and_then(|peer| peer.lingering.remove(job)).is_some();
                self.ceased += u64::from(was);
            }
            Input::ClientGone { job } => self.client_gone(*job),
            Input::Revoked { key } => {
                self.end_all(&Ending::Revoked, |spec| spec.key == *key);
            }
            Input::SignedOut { page_session } => {
                let its = Some(page_session);
                self.end_all(&Ending::SignedOut, |spec| spec.page_session.as_ref() == its);
            }
            Input::Closed { scope } => {
                self.end_all(&Ending::Closed, |spec| spec.scope == *scope);
            }
            Input::Shutdown => self.shutdown(),
            Input::Abort => self.abort(),
        }
        self.go_on();
    }

    /// Jobs that still wait, and have lost their last provider or found their first.
    pub(crate) fn note_providers(&mut self) {
        let now = self.now;
        for id in self.queued() {
            let Some(job) = self.jobs.get(&id) else { continue };
            let served = !self.nobody_is_left(job);
            if let Some(job) = self.jobs.get_mut(&id)
                && !matches!(job.place, JobState::Queued(_, before) if before == served)
            {
                job.wait_from(now, served);
                self.flipped += 1;
            }
        }
    }

    pub(crate) fn peer(&self, id: ProviderId) -> Option<&Peer> {
        self.peers.iter().find(|peer| peer.id == id)
    }

    pub(crate) fn peer_mut(&mut self, id: ProviderId) -> Option<&mut Peer> {
        self.peers.iter_mut().find(|peer| peer.id == id)
    }

    /// The jobs at a provider, oldest first.
    pub(crate) fn held_by(&self, id: ProviderId) -> Vec<JobId> {
        self.sorted(|job| matches!(job.place, JobState::Held(held) if held.by == id))
    }

    /// The jobs in queues, oldest first.
    pub(crate) fn queued(&self) -> Vec<JobId> {
        self.sorted(|job| matches!(job.place, JobState::Queued(..)))
    }

    pub(crate) fn owe_end(&mut self, job: JobId, ending: Ending) {
        self.owed.push(Output::End { job, ending });
    }

    /// Takes a job from its provider and out of the model.
    pub(crate) fn release(&mut self, id: JobId) -> Option<(JobRecord, HeldJob)> {
        let Some(JobState::Held(held)) = self.jobs.get(&id).map(|job| job.place) else {
            return None;
        };
        let job = self.jobs.remove(&id)?;
        if let Some(peer) = self.peer_mut(held.by) {
            peer.note_gone(&job.spec.model, id);
            peer.reported = peer.reported.saturating_sub(1);
            match peer.standing {
                Standing::Trial(Some(trial)) if trial == id => {
                    peer.standing = Standing::Trial(None);
                }
                _ => {}
            }
        }
        Some((job, held))
    }

    /// For a second from now on, the provider may count a job more than it has; one that lingers may
    /// go on with it.
    pub(crate) fn note_cancel(&mut self, id: ProviderId, job: JobId) {
        let (now, longest) = (self.now, self.config.request_timeout);
        if let Some(peer) = self.peer_mut(id) {
            if peer.offer.lingers {
                peer.lingering.insert(job, now + longest);
            }
            let count = (peer.canceled_lately(now) + 1).min(peer.capacity());
            peer.canceled = Some((count, now));
        }
    }

    /// After a release: the draining provider may have nothing left.
    pub(crate) fn retire_if_idle(&mut self, id: ProviderId, clean: bool) {
        let idle = self.held_by(id).is_empty();
        if let Some(peer) = self.peer_mut(id)
            && idle
            && peer.draining
            && !peer.retired
        {
            peer.retired = true;
            self.owed.push(Output::Retire { provider: id, clean });
        }
    }

    /// Lets a job wait from now on, for a later model if it is better served there.
    pub(crate) fn queue(&mut self, job: JobRecord) {
        if job.spec.lent {
            return self.take_lent(job);
        }
        let mut job = self.better_served(&job).unwrap_or(job);
        let served = !self.nobody_is_left(&job);
        job.wait_from(self.now, served);
        let open = |peer: &&Peer| self.is_open_to(peer, &job);
        self.patient += u64::from(self.peers.iter().any(|peer| open(&peer)));
        self.enter_queue(job);
    }

    /// Puts a job into its queue.
    pub(crate) fn enter_queue(&mut self, job: JobRecord) {
        if job.attempt == 0 {
            let turns = self.turns.entry(job.line()).or_default();
            if !turns.contains(&job.spec.key) {
                turns.push(job.spec.key.clone());
            }
        }
        self.jobs.insert(job.spec.id, job);
    }

    /// Takes a job out of its queue. `served` costs its key the turn.
    pub(crate) fn unqueue(&mut self, id: JobId, served: bool) -> Option<JobRecord> {
        let job = self.jobs.remove(&id)?;
        if job.attempt > 0 || !matches!(job.place, JobState::Queued(..)) {
            return Some(job);
        }
        let mine = |other: &JobRecord| {
            let fresh = other.attempt == 0 && matches!(other.place, JobState::Queued(..));
            fresh && other.line() == job.line() && other.spec.key == job.spec.key
        };
        let more = self.jobs.values().any(mine);
        let turns = self.turns.entry(job.line()).or_default();
        if served || !more {
            turns.retain(|key| *key != job.spec.key);
        }
        if served && more {
            turns.push(job.spec.key.clone());
        }
        Some(job)
    }

    /// A job that was not begun, and is to be tried again.
    pub(crate) fn requeue(&mut self, mut job: JobRecord, told: Option<ProviderId>) {
        let id = job.spec.id;
        if self.stopping {
            return self.owe_end(id, Ending::ShuttingDown);
        }
        if !self.may_be_requeued(&job) {
            if let Some(provider) = told {
                let reason = CancelReason::RequeueExhausted;
                self.owed.push(Output::Cancel { job: id, provider, reason });
            }
            return self.fall_back(job, Ending::RequeueExhausted);
        }
        job.requeues += 1;
        self.queue(job);
    }

    /// Settles a job whose provider is gone or drained to the end.
    pub(crate) fn lost(&mut self, job: JobRecord, held: HeldJob) {
        if self.stopping {
            self.owe_end(job.spec.id, Ending::ShuttingDown);
        } else if held.begun {
            self.break_off(job, held, Ending::ProviderLost, false);
        } else if job.spec.pinned.is_some() {
            self.owe_end(job.spec.id, Ending::ProviderLost);
        } else {
            self.requeue(job, None);
        }
    }

    pub(crate) fn fault(&mut self, held: HeldJob) {
        let (now, config) = (self.now, self.config.clone());
        let Some(peer) = self.peer_mut(held.by) else { return };
        let healthy = peer.standing == Standing::Healthy;
        if !healthy && held.rests != peer.rests {
            return;
        }
        peer.faults += 1;
        if healthy && peer.faults < config.faults_to_rest {
            return;
        }
        let rest = peer.last_rest.map_or(config.rest_first, |last| last * 2).min(config.rest_last);
        peer.last_rest = Some(rest);
        peer.rests += 1;
        peer.standing = Standing::Resting(now + rest);
    }

    pub(crate) fn rests(&self, id: ProviderId) -> u32 {
        self.peer(id).map_or(0, |peer| peer.rests)
    }

    fn answered(&mut self, held: HeldJob, tokens: Option<u64>) {
        let now = self.now;
        let Some(peer) = self.peer_mut(held.by) else { return };
        peer.took(now - held.since, tokens);
        if peer.standing == Standing::Healthy || held.rests == peer.rests {
            peer.standing = Standing::Healthy;
            peer.faults = 0;
            peer.last_rest = None;
        }
    }

    fn join(&mut self, id: ProviderId, offer: &Offer) {
        if self.peer(id).is_none() {
            self.peers.push(Peer::new(self.now, id, offer));
        }
    }

    fn drain(&mut self, id: ProviderId, grace: Duration) {
        let end = self.now + grace;
        let Some(peer) = self.peer_mut(id) else { return };
        let first = !peer.draining;
        peer.draining = true;
        peer.grace_end = Some(peer.grace_end.map_or(end, |before| before.min(end)));
        if first {
            self.end_pinned(id);
            self.retire_if_idle(id, true);
        }
    }

    fn leave(&mut self, id: ProviderId) {
        if self.peer(id).is_none() {
            return;
        }
        self.end_pinned(id);
        let held = self.held_by(id);
        self.peers.retain(|peer| peer.id != id);
        for job in held {
            if let Some((job, held)) = self.release(job) {
                self.lost(job, held);
            }
        }
    }

    fn end_pinned(&mut self, id: ProviderId) {
        for job in self.queued() {
            if self.jobs.get(&job).is_some_and(|job| job.spec.pinned == Some(id)) {
                self.unqueue(job, false);
                self.owe_end(job, Ending::ProviderLost);
            }
        }
    }

    fn submit(&mut self, spec: &JobSpec) {
        if self.jobs.contains_key(&spec.id) {
            return;
        }
        self.accepted += 1;
        if self.stopping {
            return self.owe_end(spec.id, Ending::ShuttingDown);
        }
        let job = JobRecord::new(spec, self.accepted, self.now);
        if spec.lent {
            return self.take_lent(job);
        }
        match self.first_model(&job) {
            Ok(job) => {
                if let Some(refused) = self.take_in(job) {
                    let retry_after = Duration::ZERO;
                    self.fall_back(refused, Ending::QueueFull { retry_after });
                }
            }
            Err(ending) => self.owe_end(spec.id, ending),
        }
    }

    fn begun(&mut self, id: JobId, resumable: Option<Resumable>) {
        let deadline = self.now + self.config.idle_timeout;
        let model = self.jobs.get(&id).map(|job| job.spec.model.clone());
        if let Some(JobState::Held(held)) = self.jobs.get_mut(&id).map(|job| &mut job.place)
            && !held.begun
        {
            held.begun = true;
            held.deadline = deadline;
            let by = held.by;
            self.resumes(id, by, resumable);
            self.heard(by);
            self.backend_is_there(by);
            if let (Some(peer), Some(model)) = (self.peer_mut(by), model) {
                peer.answers_with(&model);
            }
        }
    }

    fn acknowledged(&mut self, id: JobId, by: ProviderId) {
        let request = self.config.request_timeout;
        self.heard(by);
        if let Some(JobState::Held(held)) = self.jobs.get_mut(&id).map(|job| &mut job.place)
            && held.by == by
            && !held.begun
            && !held.acknowledged
        {
            held.acknowledged = true;
            held.deadline = held.since + request;
        }
    }

    fn progress(&mut self, id: JobId, at: Instant, waiting: BlockedOn) {
        let (now, idle) = (self.now, self.config.idle_timeout);
        let Some(JobState::Held(held)) = self.jobs.get_mut(&id).map(|job| &mut job.place) else {
            return;
        };
        if !held.is_asked {
            return;
        }
        held.is_asked = false;
        if at + idle > now {
            held.deadline = at.min(now) + idle;
            return;
        }
        let Some((job, held)) = self.release(id) else { return };
        let (reason, ending) = match waiting {
            BlockedOn::Provider => (CancelReason::Timeout, Ending::IdleTimeout),
            BlockedOn::Client => (CancelReason::ClientDisconnect, Ending::ClientStalled),
        };
        self.owed.push(Output::Cancel { job: id, provider: held.by, reason });
        self.note_cancel(held.by, id);
        if waiting == BlockedOn::Provider {
            self.fault(held);
            self.break_off(job, held, ending, true);
        } else {
            self.owe_end(id, ending);
        }
        self.retire_if_idle(held.by, true);
    }

    fn finish(&mut self, id: JobId, by: ProviderId, verdict: Verdict, tokens: Option<u64>) {
        let place = self.jobs.get(&id).map(|job| job.place);
        if !matches!(place, Some(JobState::Held(held)) if held.by == by) {
            return;
        }
        let Some((mut job, held)) = self.release(id) else { return };
        self.heard(by);
        let verdict = self.verdict_on_rest(&mut job, held, verdict);
        if let (Verdict::Answered, Some(peer)) = (verdict, self.peer_mut(by)) {
            peer.answers_with(&job.spec.model);
        }
        match verdict {
            Verdict::Unreachable | Verdict::Loading => {
                self.refused(by, verdict == Verdict::Unreachable);
            }
            Verdict::Declined | Verdict::ModelFailed => {}
            _ => self.backend_is_there(by),
        }
        match verdict {
            Verdict::Answered => self.answered(held, tokens),
            Verdict::AnsweredWithFault | Verdict::Failed | Verdict::Overloaded => self.fault(held),
            Verdict::Declined | Verdict::Unserved | Verdict::ModelFailed => {}
            Verdict::Unreachable | Verdict::Loading => {}
        }
        let learnt = self.peer(by).is_some_and(|peer| {
            held.shapes.iter().any(|shape| !peer.offer.endpoints.contains(shape))
        });
        let idle = (verdict == Verdict::Overloaded && !held.begun).then(|| self.idle(&job, by));
        if let Some(elsewhere) = idle.flatten() {
            self.overloaded += 1;
            self.queue(elsewhere);
        } else if verdict == Verdict::Unserved && learnt && !held.begun {
            self.unserved(job);
        } else if matches!(verdict, Verdict::Answered | Verdict::AnsweredWithFault) {
            self.ended += 1;
        } else if matches!(verdict, Verdict::Unreachable | Verdict::Loading) && !held.begun {
            self.unready += 1;
            match self.stopping {
                true => self.owe_end(id, Ending::ShuttingDown),
                false => self.queue(job),
            }
        } else {
            if held.begun {
                self.break_off(job, held, Ending::ProviderFailed, true);
                return self.retire_if_idle(by, true);
            }
            job.avoided.push(by);
            let failed =
                matches!(verdict, Verdict::Failed | Verdict::ModelFailed | Verdict::Overloaded);
            let hopeless = failed || job.spec.pinned.is_some();
            if job.spec.lent && !failed {
                self.owe_end(id, Ending::NotLent);
            } else if hopeless && self.nobody_is_left(&job) {
                self.fall_back(job, Ending::ProviderFailed);
            } else {
                self.requeue(job, Some(by));
            }
        }
        self.retire_if_idle(by, true);
    }

    /// The job as it goes to a free provider, if there is one: for its present model, or else for the
    /// first later one.
    fn idle(&mut self, job: &JobRecord, by: ProviderId) -> Option<JobRecord> {
        let mut moved = job.clone();
        moved.avoided.push(by);
        moved.requeues += 1;
        if self.may_be_requeued(job) && self.somebody_is_idle(&moved) {
            return Some(moved);
        }
        for stage in 1.. {
            if !moved.go_on_while_busy() {
                break;
            }
            if self.somebody_is_idle(&moved) {
                self.fell_back += stage;
                return Some(moved);
            }
        }
        None
    }

    fn somebody_is_idle(&self, job: &JobRecord) -> bool {
        self.peers.iter().any(|peer| !peer.is_out() && self.may_take(peer, job))
    }

    /// Its provider does not serve its shape, but perhaps another.
    fn unserved(&mut self, job: JobRecord) {
        self.unserved += 1;
        if self.nobody_is_left(&job) {
            self.fall_back(job, Ending::NotServed);
        } else if self.stopping {
            self.owe_end(job.spec.id, Ending::ShuttingDown);
        } else {
            self.queue(job);
        }
    }

    fn client_gone(&mut self, id: JobId) {
        if let Some((_, held)) = self.release(id) {
            let reason = CancelReason::ClientDisconnect;
            self.owed.push(Output::Cancel { job: id, provider: held.by, reason });
            self.note_cancel(held.by, id);
            self.ended += 1;
            self.retire_if_idle(held.by, true);
        } else if self.unqueue(id, false).is_some() {
            self.ended += 1;
        }
    }

    fn end_all(&mut self, ending: &Ending, such: impl Fn(&JobSpec) -> bool) {
        for id in self.sorted(|job| such(&job.spec)) {
            self.revoked += 1;
            if let Some((_, held)) = self.release(id) {
                let reason = CancelReason::ClientDisconnect;
                self.owed.push(Output::Cancel { job: id, provider: held.by, reason });
                self.note_cancel(held.by, id);
                self.owe_end(id, ending.clone());
                self.retire_if_idle(held.by, true);
            } else {
                self.unqueue(id, false);
                self.owe_end(id, ending.clone());
            }
        }
    }

    fn shutdown(&mut self) {
        self.stopping = true;
        for job in self.queued() {
            self.unqueue(job, false);
            self.owe_end(job, Ending::ShuttingDown);
        }
    }

    fn abort(&mut self) {
        self.shutdown();
        for id in self.sorted(|_| true) {
            if let Some((_, held)) = self.release(id) {
                let reason = CancelReason::ServerShutdown;
                self.owed.push(Output::Cancel { job: id, provider: held.by, reason });
                self.owe_end(id, Ending::ShuttingDown);
            }
        }
        let all: Vec<_> = self.peers.iter().map(|peer| peer.id).collect();
        all.into_iter().for_each(|id| self.retire_if_idle(id, false));
    }

    fn sorted(&self, which: impl Fn(&JobRecord) -> bool) -> Vec<JobId> {
        let mut jobs: Vec<_> = self.jobs.values().filter(|job| which(job)).collect();
        jobs.sort_by_key(|job| job.seq);
        jobs.iter().map(|job| job.spec.id).collect()
    }
}
