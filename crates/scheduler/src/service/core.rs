//! The state behind the scheduler's lock: the dispatcher, the jobs and the providers.

use std::{sync::Arc, time::Instant};

use base::{Endpoints, IdMap, JobId, ModelName, ProviderId};
use dispatch::{
    BlockedOn, CancelReason, Config, Dispatcher, Ending, Input, Output, Verdict, route,
};
use http::StatusCode;
use tokio::runtime::Handle;

use super::{
    Scheduler,
    entry::{Entry, PreparedRequest, Unmade},
    note::{Note, Notes},
};
use crate::{
    claim::Claim,
    exchange::writer::{AnswerWriter, verdict_of},
    job::Failure,
    observer::Outcome,
    provider::{Assignment, Provider},
    status::RunningJob,
    translate::ProviderRequest,
};

pub(super) struct Core {
    pub(super) dispatcher: Dispatcher,
    pub(super) jobs: IdMap<JobId, Entry>,
    pub(super) providers: IdMap<ProviderId, Arc<dyn Provider>>,
    /// When [`Scheduler::run`] wakes up next. It may wake up too early, but never late.
    pub(super) armed: Option<Instant>,
    /// Whether jobs waited when [`Core::demand_may_differ`] was last asked.
    had_demand: bool,
    /// When the lock was taken: the time of everything that happens under it.
    pub(super) now: Instant,
}

impl Core {
    pub(super) fn new(config: Config, policy: Box<dyn route::Policy>, now: Instant) -> Self {
        Self {
            dispatcher: Dispatcher::new(config, policy),
            jobs: IdMap::default(),
            providers: IdMap::default(),
            armed: None,
            had_demand: false,
            now,
        }
    }

    pub(super) fn handle(&mut self, scheduler: &Scheduler, input: Input, notes: &mut Notes) {
        self.dispatcher.handle(self.now, input);
        self.carry_out(scheduler, notes);
    }

    pub(super) fn carry_out(&mut self, scheduler: &Scheduler, notes: &mut Notes) {
        // All outputs are carried out before the next input, since each is about the present state.
        while let Some(output) = self.dispatcher.poll_output() {
            match output {
                Output::Assign { job, provider, model, endpoints, attempt } => {
                    let claim = Claim { job, provider, attempt };
                    self.assign(scheduler, claim, model, endpoints, notes);
                }
                Output::Cancel { job, provider, reason } => {
                    self.cancel(job, provider, reason, notes);
                }
                Output::End { job, ending } => self.end(job, ending, notes),
                Output::BrokenOff { job, ending } => self.broken_off(job, ending, notes),
                Output::AskProgress { job } => self.answer_progress(job),
                Output::Retire { provider, clean } => {
                    if let Some(provider) = self.providers.get(&provider) {
                        provider.retire(clean);
                    }
                }
            }
        }
    }

    /// Cancels a job at its provider. The provider may never have heard of the job, because the job
    /// is gone or its request was still being translated. Then the dispatcher learns at once that
    /// the provider does not work on it.
    fn cancel(&mut self, job: JobId, id: ProviderId, reason: CancelReason, notes: &mut Notes) {
        let known = self.jobs.get_mut(&job).filter(|entry| !entry.is_preparing());
        let Some(entry) = known else {
            if let Some(entry) = self.jobs.get_mut(&job) {
                entry.release();
            }
            return self.dispatcher.handle(self.now, Input::Ceased { job, provider: id });
        };
        entry.release();
        let complete = entry.exchange.is_complete();
        // The client has the whole answer, so for observers nothing was cancelled.
        if !complete {
            notes.push(Note::Canceled(Arc::clone(&entry.job), reason));
        }
        if let Some(provider) = self.providers.get(&id) {
            provider.cancel(job, reason);
        }
        if complete {
            self.answered(job, notes);
        }
    }

    /// Takes its jobs from a provider that leaves. This happens before the dispatcher assigns them
    /// again, since the old writers must not write any more.
    pub(super) fn release_all(&mut self, id: ProviderId) {
        let held = self.dispatcher.provider(id).into_iter().flat_map(|provider| provider.jobs());
        for job in held {
            if let Some(entry) = self.jobs.get_mut(&job).filter(|entry| entry.is_with(id)) {
                entry.release();
            }
        }
    }

    /// Ends a job whose client has the whole answer.
    pub(super) fn answered(&mut self, job: JobId, notes: &mut Notes) {
        let Some(entry) = self.jobs.remove(&job) else { return };
        let status = entry.exchange.account().status.unwrap_or_default();
        notes.push(entry.ended(Outcome::Answered(status), self.now));
    }

    fn assign(
        &mut self,
        scheduler: &Scheduler,
        claim: Claim,
        model: ModelName,
        endpoints: Endpoints,
        notes: &mut Notes,
    ) {
        let entry = self.jobs.get_mut(&claim.job);
        let wanted = entry.as_ref().and_then(|entry| entry.wanted.clone());
        let terms = self.providers.get(&claim.provider).map(|provider| provider.terms(model));
        let (Some(entry), Some(wanted), Some(terms)) = (entry, wanted, terms) else {
            return self.give_up(claim.job, Ending::ProviderFailed, notes);
        };
        if entry.goes_on() {
            return self.assign_rest(scheduler, claim, (wanted, terms, endpoints), notes);
        }
        // Without a runtime there are no other threads to be delayed, so the request is made here.
        let runtime = Handle::try_current().ok().filter(|_| !wanted.is_quick(&terms, endpoints));
        let Some(runtime) = runtime else {
            let ready = wanted.ready(claim, terms, endpoints);
            return self.hand_over(scheduler, ready, notes);
        };
        entry.prepare(claim);
        Self::off_thread(scheduler, &runtime, move || wanted.ready(claim, terms, endpoints));
    }

    /// Makes a request on a thread of its own. A large body takes milliseconds for each MiB, and
    /// other jobs must not wait for the lock meanwhile.
    pub(super) fn off_thread(
        scheduler: &Scheduler,
        runtime: &Handle,
        make: impl FnOnce() -> PreparedRequest + Send + 'static,
    ) {
        let scheduler = scheduler.clone();
        runtime.spawn_blocking(move || {
            let ready = make();
            scheduler.with(|core, notes| core.prepared(&scheduler, ready, notes));
        });
    }

    /// Continues an assignment, unless the job was taken back in the meantime.
    fn prepared(&mut self, scheduler: &Scheduler, ready: PreparedRequest, notes: &mut Notes) {
        let entry = self.jobs.get_mut(&ready.claim.job);
        if entry.is_some_and(|entry| entry.prepared(ready.claim)) {
            self.hand_over(scheduler, ready, notes);
            self.carry_out(scheduler, notes);
        }
    }

    pub(super) fn hand_over(
        &mut self,
        scheduler: &Scheduler,
        ready: PreparedRequest,
        notes: &mut Notes,
    ) {
        let PreparedRequest { claim, model, translated, record } = ready;
        let Claim { job, provider: id, attempt } = claim;
        let (Some(entry), Some(provider)) = (self.jobs.get_mut(&job), self.providers.get(&id))
        else {
            return self.give_up(job, Ending::ProviderFailed, notes);
        };
        let ProviderRequest { request, endpoint, answer } = match translated {
            Ok(translated) => translated,
            Err(Unmade::Closing(closing)) => return self.close(job, &closing, notes),
            Err(Unmade::No(why)) => {
                let ending = entry.refuses(&why).unwrap_or(Ending::Untranslatable);
                entry.detail = Some(why);
                return self.give_up(job, ending, notes);
            }
        };
        entry.give(claim, provider.name(), (&model, endpoint), self.now, notes);
        // A job whose answer is being resumed began earlier, so its wait is not the load of a
        // model.
        if !entry.goes_on() {
            entry.loads(self.dispatcher.loading(self.now, job).is_some());
        }
        // The exchange must know of the attempt before the provider has the writer: the provider
        // may write at once, from another thread.
        match record {
            Some(record) => entry.exchange.begin_rest(attempt, record),
            None => entry.exchange.begin_attempt(attempt, answer),
        }
        let alternatives = entry.alternatives(endpoint);
        let request = entry.traced(request);
        let exchange = Arc::clone(&entry.exchange);
        let answer = AnswerWriter::new(exchange, scheduler.clone(), claim);
        provider.assign(Assignment { job, attempt, request, endpoint, alternatives, answer });
    }

    /// Ends a job whose assignment cannot be carried out; otherwise it would wait in vain. Its slot
    /// is freed only after that, and its provider gets no cancellation, since it never heard of the
    /// job.
    pub(super) fn give_up(&mut self, job: JobId, ending: Ending, notes: &mut Notes) {
        self.end(job, ending, notes);
        self.dispatcher.handle(self.now, Input::ClientGone { job });
    }

    /// The job, if the claim still holds.
    pub(super) fn held(&mut self, claim: Claim) -> Option<&mut Entry> {
        self.jobs.get_mut(&claim.job).filter(|entry| entry.is_at(claim))
    }

    /// Whether this status sends a job to another provider instead of the client.
    pub(super) fn goes_elsewhere(&self, job: JobId, status: StatusCode) -> bool {
        match verdict_of(status) {
            None => false,
            Some(Verdict::Overloaded) => self.dispatcher.has_idle_alternative(self.now, job),
            Some(_) => self.dispatcher.has_alternative(job),
        }
    }

    pub(super) fn end(&mut self, job: JobId, ending: Ending, notes: &mut Notes) {
        // The client has the whole answer. Whatever happens at the provider now is no failure.
        if self.jobs.get(&job).is_some_and(|entry| entry.exchange.is_complete()) {
            return self.answered(job, notes);
        }
        let Some(mut entry) = self.jobs.remove(&job) else { return };
        entry.note_given_up(notes);
        let failure = Failure { ending, detail: entry.detail.clone() };
        entry.exchange.finish(Err(failure.clone()));
        notes.push(entry.ended(Outcome::Failed(failure), self.now));
    }

    fn answer_progress(&mut self, job: JobId) {
        let progress = self.jobs.get(&job).map(|entry| entry.exchange.progress());
        let (at, waiting) = progress.unwrap_or((self.now, BlockedOn::Provider));
        self.dispatcher.handle(self.now, Input::Progress { job, at, waiting });
    }

    /// Jobs that have not ended: at most `most` of the oldest, the oldest first.
    pub(super) fn running(&self, most: usize, now: Instant) -> Vec<RunningJob> {
        let mut all: Vec<&Entry> = self.jobs.values().collect();
        // There may be many thousands of jobs. Only those that are shown are sorted.
        if all.len() > most {
            all.select_nth_unstable_by_key(most, |entry| entry.accepted);
            all.truncate(most);
        }
        all.sort_by_key(|entry| entry.accepted);
        all.into_iter().map(|entry| entry.running(now)).collect()
    }

    /// Whether the number of fellows' slots that are wanted may have changed.
    pub(super) fn demand_may_differ(&mut self) -> bool {
        let had_demand = self.had_demand;
        self.had_demand = self.dispatcher.queue_depth() > 0;
        // True once more after the last job has left, so that borrowed slots are given back.
        had_demand || self.had_demand
    }

    pub(super) fn deadline_moved_up(&self) -> bool {
        match (self.dispatcher.poll_timeout(), self.armed) {
            (Some((at, _)), Some(armed)) => at < armed,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}
