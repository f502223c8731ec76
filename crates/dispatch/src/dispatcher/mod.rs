//! The state machine: its state, and the handling of each input and each deadline.
//!
//! - [`accept`]: whether a job is accepted, and for which of its models
//! - [`jobs`]: a job's life from its acceptance to its end
//! - [`fallback`]: moves a job to another of its models
//! - [`far`]: providers on other machines: their distance and condition
//! - [`lent`]: slots that are lent to fellows, and slots that are borrowed from them
//! - [`links`]: providers that join, change, drain, rest and leave
//! - [`loading`]: models that providers do not have in memory
//! - [`placing`]: assigns jobs to providers
//! - [`resuming`]: answers that break off and that other providers resume
//! - [`retry`]: retries of a job, at another provider or in another shape
//! - [`warm`]: providers that know a part of a job's prompt
//! - [`waiting`]: how long a job waits, with a provider or without one
//! - [`waking`]: providers that are asleep, or whose backend is not there

mod accept;
mod fallback;
mod far;
mod jobs;
mod lent;
mod links;
mod loading;
mod placing;
mod resuming;
mod retry;
mod waiting;
mod waking;
mod warm;

#[cfg(test)]
mod clouds;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use base::{JobId, ProviderId};

use crate::{
    config::Config,
    input::Input,
    job::Job,
    output::{CancelReason, Ending, Output},
    providers::Providers,
    queue::Queues,
    route::{Candidate, Fastest, Policy},
    timers::{Timer, Timers},
};

/// Decides which provider serves which job, and when.
///
/// **Capacity.** A provider's load is the larger of two counts: the load that it reports, and the
/// jobs that it has from here. Its report is adjusted by one for each job assigned since and for
/// each that ended. For a second after a cancellation, any excess in the report is first attributed
/// to the cancelled jobs. A provider gets a job only while its load is below its capacity. If it
/// lingers, a cancelled job counts as load until the provider reports that it has ceased, at most
/// for the request time-out.
///
/// **Queues.** A job without a free provider waits in the queue of its scope and model: after
/// requeued jobs, in the order of its key, keys taking turns. A provider with room looks at all
/// queues that it serves, takes the one whose next job is oldest, and in it the first job that
/// fits. Whenever room appears, jobs are assigned at once: after each input, no job waits while a
/// provider is free for it, except for one that waits for another (see *Memory* and *Prompts*).
///
/// **Requeues.** A job whose answer has not begun moves to another provider when its own is lost,
/// finishes draining, fails the job or declines it. It goes before all jobs that were not requeued,
/// keeps its age and its wait so far, and ignores the bounds of the queue. It avoids the providers
/// that failed or declined it. A provider that turns out not to serve the endpoint is not avoided:
/// it may get the job again in another shape, and that try does not count as a requeue.
///
/// **Resumes.** A job whose answer breaks off goes on at another provider, if it may be resumed: at
/// the front of the queue of the model that it was served by, and only at providers that can resume
/// answers of that model. It then has no fallbacks and goes to a cloud only if its present target
/// is a cloud. It avoids a provider that failed it while another one is able. If none is connected,
/// it waits, unless the provider that began the answer could not resume answers itself. Each wait
/// is bounded, and so is the number of breaks; then the job ends as it would have ended at the
/// break. A job that is pinned or a fellow's is never resumed.
///
/// **Shapes.** A job goes only to providers that serve one of the endpoints it can be served in.
/// Among the free ones, those that serve its own endpoint come first.
///
/// **Distances.** A job goes no farther than its [`Route`](crate::Route) allows. Among the free
/// providers, the nearest come first, even before those of its own shape; on
/// [`Route::Mesh`](crate::Route::Mesh) distance comes last. If one of the remaining providers is
/// another machine, only the fastest stay, then the nearest of these; the [`Policy`] makes the
/// final choice. Speed is measured over whole answers and reduced by the throttle.
///
/// **Memory.** Among the providers that are left, those that have the model in memory come first,
/// then those that are loading it, the soonest first, then the one that loads it fastest; the
/// policy chooses among equals. If a free provider would have to load the job's model, the job
/// waits, for as long as that load would take, for another one that has the model in memory or is
/// loading it, is not farther away, and lacks only a free slot. So the job begins at most twice as
/// late as by the better of the two ways. A provider that is given a job counts as loading the
/// model for it.
///
/// **Prompts.** A job also waits for a provider that knows a long part of its prompt, as the
/// [`Policy`] says, for as long as it would take to compute that part again, and ten seconds at
/// most. A provider passes over a bounded number of such jobs.
///
/// **Clouds.** A cloud is a last resort. A job that may go to clouds has its models once more at
/// the end of its targets, for clouds alone. It goes on to these where no own provider is left, and
/// not where own providers are only busy.
///
/// **Fallbacks.** A job that has not begun and that its model's providers cannot serve moves to its
/// next served fallback: see [`JobSpec::fallbacks`](crate::JobSpec::fallbacks). After each input,
/// no job waits for a model that no provider here can serve while a fallback is served.
///
/// **Waits.** A job that no connected provider can serve ends after the queue time-out. While a
/// provider that can serve it is connected, but none has a free slot, the busy time-out applies. A
/// provider that drains, and one that failed or declined the job, cannot serve it; one that rests
/// or is paused can.
///
/// **Rests.** Consecutive faults send a provider to rest, then on trial. A job that no healthy
/// provider may get ignores rests and trials.
///
/// **Backends.** A job whose provider's backend takes no requests is requeued and does not avoid
/// that provider. The backend is tried again after growing delays. Until it answers, the provider
/// does not count, or counts as busy if the backend loads a model.
///
/// **Acknowledgements.** A provider that acknowledges jobs and misses one counts as asleep: it gets
/// no jobs, as if it were full, until it gives a sign of life. The job moves if another provider
/// can serve it.
///
/// **Lent slots.** Some of a provider's slots may be lent to fellows. Own jobs use the other slots;
/// a fellow's job takes a lent slot at once or ends. A fellow's provider has as many slots here as
/// the fellow lends, and is busy while it lends none.
///
/// **Bounds.** [`Config`] bounds waiting jobs, the capacity of the providers bounds assigned ones,
/// the links that the driver accepts bound the providers, and its protocol bounds the models of a
/// provider.
#[derive(Debug)]
pub struct Dispatcher {
    pub(crate) config: Config,
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) providers: Providers,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) queues: Queues,
    pub(crate) timers: Timers,
    outputs: VecDeque<Output>,
    candidates: Vec<Candidate>,
    /// When providers without a job's model in memory are to be looked at again; empty between calls.
    looks: Vec<(ProviderId, Instant)>,
    /// Providers that have begun to load the model of a job; empty between calls.
    loading: Vec<ProviderId>,
    /// Free providers that have passed over jobs which wait for other providers; each stays here
    /// until its next look.
    passing: BTreeSet<ProviderId>,
    /// Whether the last job for which a model was being loaded has left its provider; `false`
    /// between calls.
    load_ended: bool,
    fastest: Fastest,
    /// The number of accepted jobs.
    accepted: u64,
    /// The number of assignments made.
    given: u64,
    stopping: bool,
}

impl Dispatcher {
    /// A dispatcher without providers or jobs.
    pub fn new(config: Config, policy: Box<dyn Policy>) -> Self {
        Self {
            config,
            policy,
            providers: Providers::default(),
            jobs: BTreeMap::new(),
            queues: Queues::default(),
            timers: Timers::default(),
            outputs: VecDeque::new(),
            candidates: Vec::new(),
            looks: Vec::new(),
            loading: Vec::new(),
            passing: BTreeSet::new(),
            load_ended: false,
            fastest: Fastest::default(),
            accepted: 0,
            given: 0,
            stopping: false,
        }
    }

    /// Replaces the bounds and delays. Armed deadlines stay as they are; later waits and jobs
    /// follow the new ones.
    pub fn configure(&mut self, config: Config) {
        self.config = config;
    }

    /// Handles one event. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        let may_end_waits = loading::may_end_waits(&input);
        self.take(now, input);
        // Once for each input, whatever it changed: no job waits while a provider is free for it.
        self.end_waits(now, may_end_waits);
        if may_end_waits {
            self.end_prompt_waits(now);
        }
    }

    fn take(&mut self, now: Instant, input: Input) {
        match input {
            Input::Join { provider, offer } => self.join(now, provider, offer),
            Input::Models { provider, models, load } => self.models(now, provider, models, load),
            Input::Unloaded { provider, models } => self.unloaded(now, provider, models),
            Input::Continues { provider, models } => self.continues(now, provider, models),
            Input::Endpoints { provider, endpoints } => self.endpoints(now, provider, endpoints),
            Input::Load { provider, load } => self.load(now, provider, load),
            Input::Capacity { provider, max_concurrent } => {
                self.capacity(now, provider, max_concurrent);
            }
            Input::Lend { provider, slots } => self.lend(now, provider, slots),
            Input::Moved { provider, distance } => self.moved(now, provider, distance),
            Input::Condition { provider, speed, throttle } => {
                self.condition(now, provider, speed, throttle);
            }
            Input::Drain { provider, grace } => self.drain(now, provider, grace),
            Input::Leave { provider, why: _ } => self.leave(now, provider),
            Input::Submit(spec) => self.submit(now, spec),
            Input::Acknowledged { job, provider } => self.acknowledged(now, job, provider),
            Input::Begun { job, resumable } => self.begun(now, job, resumable),
            Input::Progress { job, at, waiting } => self.progress(now, job, at, waiting),
            Input::Complete { job } => self.complete(now, job),
            Input::Finished { job, provider, verdict, tokens } => {
                self.finished(now, job, provider, verdict, tokens);
            }
            Input::Ceased { job, provider } => self.ceased(now, provider, job),
            Input::ClientGone { job } => self.client_gone(now, job),
            Input::Revoked { key } => {
                self.end_all(now, &Ending::Revoked, |job| job.key == key);
            }
            Input::SignedOut { page_session } => {
                let its = Some(page_session);
                self.end_all(now, &Ending::SignedOut, |job| job.page_session == its);
            }
            Input::Closed { scope } => {
                self.end_all(now, &Ending::Closed, |job| job.scope == scope);
            }
            Input::Shutdown => self.shutdown(),
            Input::Abort => self.abort(),
        }
    }

    /// Handles every deadline that is due. Poll the outputs afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_due(now) {
            match timer {
                Timer::Backend(provider) => self.backend_due(now, provider),
                Timer::Linger(provider, job) => self.ceased(now, provider, job),
                Timer::Load(provider) => self.load_look_due(now, provider),
                Timer::Job(job) => self.job_due(now, job),
                Timer::Grace(provider) => self.grace_over(now, provider),
                Timer::Rest(provider) => self.rest_over(now, provider),
            }
            // Before the next deadline, so that a job which can be served now is not ended by its
            // time-out.
            self.end_waits(now, true);
        }
    }

    /// The next output, to be carried out in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Dispatcher::handle_timeout`], and the reason.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        self.timers.next()
    }

    fn end(&mut self, job: JobId, ending: Ending) {
        self.outputs.push_back(Output::End { job, ending });
    }

    fn cancel(&mut self, job: JobId, provider: ProviderId, reason: CancelReason) {
        self.outputs.push_back(Output::Cancel { job, provider, reason });
    }
}
