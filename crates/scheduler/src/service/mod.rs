//! The scheduler: the dispatcher behind one lock. It carries out the effects and keeps the
//! deadlines.
//!
//! Lock order: the scheduler's, then an exchange's. Providers are called under the scheduler's
//! lock, so that an assignment and its cancellation reach them in order; observers are called after
//! it is released.
//!
//! - `core`: the state behind the lock, and how the dispatcher's effects are carried out
//! - `entry`: a job that has not ended
//! - `fleet`: what fellows lend each other
//! - `note`: the steps that observers see
//! - `resuming`: answers that break off, and that other providers resume

mod core;
mod entry;
mod fleet;
mod note;
mod resuming;

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use base::{Endpoints, JobId, KeyId, ModelName, PageSessionId, ProviderId, Scope};
use dispatch::{Config, Ending, Input, JobSpec, LeaveReason, Loading, Route, Verdict, Wait, route};
use tokio::sync::Notify;

pub use self::fleet::FleetAccess;
use self::{
    core::Core,
    entry::{Entry, KeptRequest, TracedJob},
    note::{Note, Notes},
};
use crate::{
    claim::Claim,
    clock::now,
    exchange::{
        answer::Answer,
        state::Exchange,
        traffic::{Head, WriteError},
    },
    job::{Job, Meter},
    observer::{Announcement, JobFacts, Observer, Outcome},
    provider::{Membership, ModelChange, ModelChangeEnd, Offer, Provider},
    status::{ModelLoad, RunningJob, Status},
};

/// A handle to the scheduler; clones share it.
#[derive(Clone)]
pub struct Scheduler(Arc<Inner>);

struct Inner {
    core: Mutex<Core>,
    /// Claims whose writers were dropped. [`Scheduler::run`] fails their jobs later.
    dropped: Mutex<Vec<Claim>>,
    /// Wakes [`Scheduler::run`] when a deadline is earlier than its next wake-up.
    wake: Notify,
    /// Notified when jobs wait. Set once a caller wants slots of fellows.
    demand: OnceLock<Arc<Notify>>,
    observers: Vec<Arc<dyn Observer>>,
}

impl Scheduler {
    /// A scheduler with this configuration and policy, which reports each job to `observers`.
    pub fn new(
        config: Config,
        policy: Box<dyn route::Policy>,
        observers: Vec<Arc<dyn Observer>>,
    ) -> Self {
        Self(Arc::new(Inner {
            core: Mutex::new(Core::new(config, policy, now())),
            dropped: Mutex::default(),
            wake: Notify::new(),
            demand: OnceLock::new(),
            observers,
        }))
    }

    /// Keeps the deadlines, forever. Exactly one task must run this.
    pub async fn run(self) {
        loop {
            self.fail_dropped();
            match self.arm() {
                Some(at) if at <= now() => self.timeout(),
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => self.timeout(),
                    () = self.0.wake.notified() => {}
                },
                None => self.0.wake.notified().await,
            }
        }
    }

    /// Submits a job. A refusal is also reported through the returned answer.
    pub fn submit(&self, job: Job) -> Answer {
        let id = job.id;
        let traced = Arc::new(traced(&job));
        let resumes = job.resumes && job.lent.is_none() && job.pinned.is_none();
        let (spec, wanted, meter) = parts(job);
        let accepted = now();
        let exchange = Exchange::new(meter, accepted);
        let mut entry = Entry::new(Arc::clone(&traced), Arc::clone(&exchange), wanted, accepted);
        entry.resumes = resumes;
        // Before the dispatcher gets the job, since the job may end at once.
        traced.span.in_scope(|| {
            for observer in &self.0.observers {
                observer.accepted(&traced.facts);
            }
        });
        self.with(|core, notes| {
            core.jobs.insert(id, entry);
            core.handle(self, Input::Submit(spec), notes);
        });
        Answer::new(exchange, self.clone(), id, traced.span.clone(), accepted)
    }

    /// Registers a provider.
    pub fn join(&self, id: ProviderId, offer: Offer, provider: Arc<dyn Provider>) -> Membership {
        let (scope, models) = (offer.scope.clone(), offer.models.clone());
        let joined = Arc::clone(&provider);
        self.with(|core, notes| {
            core.providers.insert(id, provider);
            core.handle(self, Input::Join { provider: id, offer }, notes);
        });
        self.announced(id, &*joined, &scope, &models, !models.is_empty());
        Membership::new(self.clone(), id)
    }

    /// Drains a provider: it gets no more jobs, and may finish its current ones within `grace`.
    /// Returns whether it was connected.
    pub fn drain(&self, id: ProviderId, reason: &str, grace: Duration) -> bool {
        self.with(|core, notes| {
            let Some(provider) = core.providers.get(&id) else { return false };
            provider.drain(reason, grace);
            core.handle(self, Input::Drain { provider: id, grace }, notes);
            true
        })
    }

    /// Asks a provider for its models again. Returns whether it was connected.
    pub fn refresh(&self, id: ProviderId, reason: &str) -> bool {
        let core = self.lock();
        let provider = core.providers.get(&id);
        provider.inspect(|provider| provider.refresh(reason)).is_some()
    }

    /// Has a provider load a model, or unload it. `None` if the provider is not connected.
    pub fn change_model(&self, id: ProviderId, model: &str, loads: bool) -> Option<ModelChangeEnd> {
        let core = self.lock();
        let provider = core.providers.get(&id)?;
        let (change, changing) = ModelChange::new(model.to_owned(), loads);
        provider.change_model(change);
        Some(changing)
    }

    /// Refuses new jobs, ends waiting ones, and drains every provider.
    pub fn shut_down(&self, reason: &str, grace: Duration) {
        self.with(|core, notes| {
            core.handle(self, Input::Shutdown, notes);
            let all: Vec<_> = core.providers.keys().copied().collect();
            // Each provider gets notice of its drain before the dispatcher retires it, which may
            // happen at once.
            for id in all {
                if let Some(provider) = core.providers.get(&id) {
                    provider.drain(reason, grace);
                }
                core.handle(self, Input::Drain { provider: id, grace }, notes);
            }
        });
    }

    /// Replaces the bounds and delays. Deadlines that run go on as they were set.
    pub fn configure(&self, config: Config) {
        self.lock().dispatcher.configure(config);
    }

    /// Ends every remaining job.
    pub fn abort(&self) {
        self.handle(Input::Abort);
    }

    /// Ends every job of a key that was revoked.
    pub fn revoke(&self, key: &KeyId) {
        self.handle(Input::Revoked { key: key.clone() });
    }

    /// Ends every job of a page session that has ended.
    pub fn sign_out(&self, page_session: &PageSessionId) {
        self.handle(Input::SignedOut { page_session: page_session.clone() });
    }

    /// Ends every job of a closed scope.
    pub fn close(&self, scope: &Scope) {
        self.handle(Input::Closed { scope: scope.clone() });
    }

    /// Whether no job is waiting or at a provider.
    pub fn is_idle(&self) -> bool {
        self.lock().dispatcher.is_idle()
    }

    /// Whether a provider serves the model now.
    pub fn serves(&self, scope: &Scope, model: &ModelName) -> bool {
        self.lock().dispatcher.serves(scope, model)
    }

    /// The shapes in which the model is served now to jobs of this route.
    pub fn endpoints(&self, scope: &Scope, model: &ModelName, route: Route) -> Endpoints {
        self.lock().dispatcher.endpoints_of(scope, model, route)
    }

    /// The models that are served now, sorted, without `*`.
    pub fn models(&self, scope: &Scope) -> Vec<ModelName> {
        self.lock().dispatcher.served_models(scope).cloned().collect()
    }

    /// The current state of all queues and providers.
    pub fn status(&self) -> Status {
        let core = self.lock();
        Status::of(&core.dispatcher, &core.providers, now())
    }

    /// Jobs that wait, and jobs at providers.
    pub fn counts(&self) -> (usize, usize) {
        let core = self.lock();
        (core.dispatcher.queue_depth(), core.dispatcher.in_flight())
    }

    /// Jobs that have not ended: at most `most` of the oldest, the oldest first.
    pub fn running(&self, most: usize) -> Vec<RunningJob> {
        self.lock().running(most, now())
    }

    /// The reason for which a job waits, while it is in a queue.
    pub fn wait(&self, job: JobId) -> Option<Wait> {
        self.lock().dispatcher.wait(job)
    }

    pub(crate) fn loading(&self, job: JobId) -> Option<ModelLoad> {
        let core = self.lock();
        let Loading { provider, left } = core.dispatcher.loading(now(), job)?;
        let name = core.providers.get(&provider).map_or("", |provider| provider.name()).to_owned();
        Some(ModelLoad { provider: name, left })
    }

    pub(crate) fn models_of(&self, id: ProviderId, models: Vec<ModelName>, load: u32, whole: bool) {
        let known = {
            let core = self.lock();
            let view = core.dispatcher.provider(id);
            view.map(|view| view.scope().clone()).zip(core.providers.get(&id).cloned())
        };
        if let Some((scope, provider)) = known {
            let announced = models.clone();
            self.handle(Input::Models { provider: id, models, load });
            self.announced(id, &*provider, &scope, &announced, whole);
        }
    }

    pub(crate) fn leave(&self, id: ProviderId, why: LeaveReason) {
        self.with(|core, notes| {
            core.providers.remove(&id);
            core.release_all(id);
            core.handle(self, Input::Leave { provider: id, why }, notes);
        });
        for observer in &self.0.observers {
            observer.left(id, why);
        }
    }

    /// Begins the answer, unless the job is no longer this provider's or another provider will be
    /// asked. This is one atomic step: a job whose head the client may have seen moves only to a
    /// provider that resumes its answer.
    pub(crate) fn begin(&self, claim: Claim, head: Head) -> Result<(), WriteError> {
        let job = claim.job;
        self.with(|core, notes| {
            // The job moves before its client has seen a byte.
            if core.goes_elsewhere(job, head.status) && core.held(claim).is_some() {
                return Err(WriteError::Refused);
            }
            if core.held(claim).is_some_and(|entry| entry.goes_on()) {
                return core.goes_on(self, claim, &head, notes);
            }
            let at = core.now;
            let may_be_resumed = core.dispatcher.may_be_resumed(job);
            let entry = core.held(claim).ok_or(WriteError::Over)?;
            let record = entry.record(&head).filter(|_| may_be_resumed);
            let serve_rest_as = record.as_ref().map(|record| record.serve_as());
            entry.exchange.begin_answer(claim, head, at, record)?;
            let resumable = entry.begins(serve_rest_as.unwrap_or(Endpoints::NONE), at);
            notes.push(Note::FirstByte(Arc::clone(&entry.job), at - entry.accepted));
            core.handle(self, Input::Begun { job, resumable }, notes);
            Ok(())
        })
    }

    /// The client has the whole answer. The provider's own end only frees its slot.
    pub(crate) fn complete(&self, claim: Claim) {
        let job = claim.job;
        self.with(|core, notes| {
            if core.held(claim).is_some() {
                core.handle(self, Input::Complete { job }, notes);
            }
        });
    }

    pub(crate) fn finished(&self, claim: Claim, verdict: Verdict, detail: Option<String>) {
        let Claim { job, provider, .. } = claim;
        self.with(|core, notes| {
            let Some(entry) = core.held(claim) else { return };
            let complete = entry.exchange.is_complete();
            let verdict = if complete { Verdict::Answered } else { verdict };
            entry.detail = detail.or(entry.detail.take());
            let answered = matches!(verdict, Verdict::Answered | Verdict::AnsweredWithFault);
            let mut tokens = None;
            if !answered {
                // Released first: the dispatcher may assign the job again at once, and this attempt
                // must write nothing after that.
                entry.release();
            } else if let Some(entry) = core.jobs.remove(&job) {
                let account = entry.exchange.account();
                let status = account.status.unwrap_or_default();
                let own = |tokens: u64| tokens.saturating_sub(account.delivered);
                tokens = account.usage.completion_tokens.filter(|_| status.is_success()).map(own);
                notes.push(entry.ended(Outcome::Answered(status), core.now));
            }
            let finished = Input::Finished { job, provider, verdict, tokens };
            core.handle(self, finished, notes);
        });
    }

    /// Passes a job to another provider, if there is one that can take it. Returns whether there
    /// is.
    pub(crate) fn pass_on(&self, claim: Claim) -> bool {
        let Claim { job, provider, .. } = claim;
        self.with(|core, notes| {
            let has_alternative = core.dispatcher.has_alternative(job);
            let Some(entry) = core.held(claim).filter(|_| has_alternative) else { return false };
            entry.release();
            let verdict = Verdict::Declined;
            let finished = Input::Finished { job, provider, verdict, tokens: None };
            core.handle(self, finished, notes);
            true
        })
    }

    pub(crate) fn client_gone(&self, job: JobId) {
        self.with(|core, notes| {
            core.handle(self, Input::ClientGone { job }, notes);
            if let Some(mut entry) = core.jobs.remove(&job) {
                // No client reads the exchange any more. Whatever the provider still writes is
                // refused.
                entry.exchange.finish(Ok(()));
                entry.note_given_up(notes);
                notes.push(entry.ended(Outcome::ClientGone, core.now));
            }
        });
    }

    /// Ends a job whose client reads too slowly for its provider.
    pub(crate) fn stalled(&self, job: JobId) {
        self.with(|core, notes| {
            core.handle(self, Input::ClientGone { job }, notes);
            core.end(job, Ending::ClientStalled, notes);
        });
    }

    pub(crate) fn dropped(&self, claim: Claim) {
        // A writer may be dropped under the scheduler's lock, so this does not take it.
        let mut dropped = self.0.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.push(claim);
        drop(dropped);
        self.0.wake.notify_one();
    }

    pub(crate) fn handle(&self, input: Input) {
        self.with(|core, notes| core.handle(self, input, notes));
    }

    fn fail_dropped(&self) {
        // Taken out before the jobs are failed, which takes the scheduler's lock.
        let dropped =
            std::mem::take(&mut *self.0.dropped.lock().unwrap_or_else(PoisonError::into_inner));
        for claim in dropped {
            let why = Some("the provider dropped the job".to_owned());
            self.finished(claim, Verdict::Failed, why);
        }
    }

    fn timeout(&self) {
        self.with(|core, notes| {
            core.dispatcher.handle_timeout(core.now);
            core.carry_out(self, notes);
        });
    }

    /// Records the next deadline, and returns it.
    fn arm(&self) -> Option<Instant> {
        let mut core = self.lock();
        core.armed = core.dispatcher.poll_timeout().map(|(at, _)| at);
        core.armed
    }

    fn announced(
        &self,
        id: ProviderId,
        provider: &dyn Provider,
        scope: &Scope,
        models: &[ModelName],
        whole: bool,
    ) {
        let own = id.to_string();
        let name = Some(provider.name()).filter(|name| !name.is_empty()).unwrap_or(&own);
        let announcement = Announcement { scope, name, models, whole };
        for observer in &self.0.observers {
            observer.announced(&announcement);
        }
    }

    /// Acts under the lock. Then notifies the observers, and also the timer if it has to wake
    /// earlier.
    fn with<T>(&self, act: impl FnOnce(&mut Core, &mut Notes) -> T) -> T {
        self.with_demand(self.0.demand.get(), act)
    }

    /// As [`Scheduler::with`], but with this `demand` to notify when jobs wait.
    fn with_demand<T>(
        &self,
        demand: Option<&Arc<Notify>>,
        act: impl FnOnce(&mut Core, &mut Notes) -> T,
    ) -> T {
        let mut notes = Notes::default();
        let mut core = self.lock();
        core.now = now();
        let result = act(&mut core, &mut notes);
        let earlier = core.deadline_moved_up();
        let demand = demand.filter(|_| core.demand_may_differ());
        // Observers run without the lock: they may be slow, and may call the scheduler.
        drop(core);
        if earlier {
            self.0.wake.notify_one();
        }
        demand.into_iter().for_each(|demand| demand.notify_one());
        notes.iter().for_each(|note| self.tell(note));
        result
    }

    fn tell(&self, note: &Note) {
        let (Note::Assigned(job, ..)
        | Note::Requeued(job)
        | Note::FirstByte(job, _)
        | Note::BrokeOff(job, _)
        | Note::Canceled(job, _)
        | Note::Ended(job, _)) = note;
        // Entered only here, and not for each chunk of the answer, because entering a span takes
        // time.
        let _span = job.span.enter();
        for observer in &self.0.observers {
            match note {
                Note::Assigned(job, provider, waited) => {
                    observer.assigned(&job.facts, *provider, *waited);
                }
                Note::Requeued(job) => observer.requeued(&job.facts),
                Note::FirstByte(job, after) => observer.first_byte(&job.facts, *after),
                Note::BrokeOff(job, broken) => observer.broke_off(&job.facts, broken),
                Note::Canceled(job, reason) => observer.canceled(&job.facts, *reason),
                Note::Ended(job, end) => observer.ended(&job.facts, end),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Core> {
        self.0.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn traced(job: &Job) -> TracedJob {
    let path = job.request.path_and_query.split('?').next().unwrap_or_default();
    let span = tracing::debug_span!("job", request_id = %job.lent.as_ref().map_or(job.id, |lent| lent.job), model = %job.model, key = %job.key);
    let facts = JobFacts {
        id: job.id,
        scope: job.scope.clone(),
        model: job.model.clone(),
        endpoint: job.endpoint,
        key: job.key.clone(),
        path: path.into(),
        streaming: job.request.streaming,
        lent: job.lent.clone(),
        trace: job.trace,
    };
    TracedJob { facts, span }
}

/// Splits a job into the parts for the dispatcher, its providers and its exchange.
fn parts(job: Job) -> (JobSpec, KeptRequest, Box<dyn Meter>) {
    let mut targets = job.targets.into_iter();
    // The worker of a fellow's job gets the request unchanged: the job's home translates it.
    let serve_as = match &job.lent {
        Some(_) => Endpoints::only(job.endpoint),
        None => job.serve_as,
    };
    let spec = JobSpec {
        id: job.id,
        scope: job.scope,
        model: targets.next().unwrap_or(job.model),
        fallbacks: targets.collect(),
        endpoint: job.endpoint,
        serve_as,
        key: job.key,
        page_session: job.page_session,
        size: job.size,
        affinity: job.affinity,
        pinned: job.pinned,
        lent: job.lent.is_some(),
        route: job.route,
        clouds: job.clouds,
        known: job.known,
    };
    let request = Arc::new(job.request);
    let wanted = KeptRequest { request, translator: job.translator, serve_as: job.serve_as };
    (spec, wanted, job.meter)
}
