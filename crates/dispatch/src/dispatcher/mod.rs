//! The state machine: its state, and what each input and each deadline leads to.
//!
//! - [`accept`]: whether a job is taken in, and for which of its models
//! - [`accept`]: whether a job is accepted, and for which of its models
//! - [`jobs`]: a job's life from its acceptance to its end
//! - [`fallback`]: a job that goes on to another of its models
//! - [`fallback`]: moves a job to another of its models
//! - [`far`]: providers on other machines: their distance and condition
//! - [`links`]: providers that join, change, drain, rest and leave

mod accept;
mod fallback;
mod far;
mod jobs;
mod links;
mod placing;
mod retry;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Instant,
};

use base::{JobId, ProviderId};

use crate::{
    config::Config,
    input::Input,
    job::Job,
    output::{CancelReason, Ending, Output},
    provider::Providers,
    queue::Queues,
    route::{Candidate, Fastest, Policy},
    timers::{Timer, Timers},
};

/// Decides which provider serves which job, and when.
///
/// **Capacity.** A provider's load is what it reports or what it holds of ours, whichever is more; the
/// report is moved by one with each job it is given and each that ends. For a second after a
/// cancellation, what is reported above that is first put down to the cancelled jobs. It is given a job
/// only while its load is below its capacity. If it lingers, a cancelled job is part of its load until
/// it says that it has ceased, at most for the request time-out.
///
/// **Queues.** A job for which nobody is free waits in the queue of its scope and model: after
/// requeued jobs, in the order of its key, keys taking turns. A provider that has room takes, of
/// all queues it serves, the one whose next job is oldest, and in it the first job that fits it.
/// Whatever makes room is followed at once by what then can be assigned: after each input, no job
/// waits for which a provider is free.
///
/// **Requeues.** A job whose answer has not begun moves to another provider when its own is lost,
/// drained to the end, fails it or declines it: before all jobs that were not requeued, with its
/// age and the wait it had, and whatever the bounds of the queue. It avoids who failed or declined
/// it. A provider that turns out not to serve its endpoint is not avoided: it may get the job again
/// in another shape, and that try is not counted as a requeue.
///
/// **Shapes.** A job goes only to providers that serve one of the endpoints it can be served in.
/// Of those that are free for it, the ones that serve its own endpoint come first.
///
/// **Distances.** A job goes no farther than its [`Route`](crate::Route) lets it. Of those that are
/// free for it, the nearest come first, before those of its own shape; on [`Route::Mesh`](crate::Route::Mesh) distance
/// comes last. Where one of those left is another machine, the fastest stay, then the nearest of
/// these; the [`Policy`] has the last word. Speed is measured in whole answers, and throttled.
///
/// **Fallbacks.** A job that has not begun and cannot be had of its model goes on to the next of
/// its fallbacks that somebody serves: see [`JobSpec::fallbacks`](crate::JobSpec::fallbacks). After
/// each input, no job waits for a model that nobody here can serve it while a fallback is served.
///
/// **Rests.** Faults in a row send a provider to rest, then on trial. Rests and trials are looked
/// past for a job that nobody healthy may be given.
///
/// **Bounds.** Waiting jobs are bounded by [`Config`], assigned ones by the capacity of the
/// providers, providers by the links the driver accepts, and the models of one by its protocol.
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
    fastest: Fastest,
    /// How many jobs were accepted.
    accepted: u64,
    /// How many assignments were made.
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
            fastest: Fastest::default(),
            accepted: 0,
            given: 0,
            stopping: false,
        }
    }

    /// Handles one event. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Join { provider, offer } => self.join(now, provider, offer),
            Input::Models { provider, models, load } => self.models(now, provider, models, load),
            Input::Endpoints { provider, endpoints } => self.endpoints(now, provider, endpoints),
            Input::Load { provider, load } => self.load(now, provider, load),
            Input::Capacity { provider, max_concurrent } => {
                self.capacity(now, provider, max_concurrent);
            }
            Input::Moved { provider, distance } => self.moved(now, provider, distance),
            Input::Condition { provider, speed, throttle } => {
                self.condition(now, provider, speed, throttle);
            }
            Input::Drain { provider, grace } => self.drain(now, provider, grace),
            Input::Leave { provider, why: _ } => self.leave(now, provider),
            Input::Submit(spec) => self.submit(now, spec),
            Input::Begun { job } => self.begun(now, job),
            Input::Progress { job, at, waiting } => self.progress(now, job, at, waiting),
            Input::Finished { job, provider, verdict, tokens } => {
                self.finished(now, job, provider, verdict, tokens);
            }
            Input::Ceased { job, provider } => self.ceased(now, provider, job),
            Input::ClientGone { job } => self.client_gone(now, job),
            Input::Revoked { key } => {
                self.end_all(now, &Ending::Revoked, |job| job.key == key);
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
                Timer::Linger(provider, job) => self.ceased(now, provider, job),
                Timer::Job(job) => self.job_due(now, job),
                Timer::Grace(provider) => self.grace_over(now, provider),
                Timer::Rest(provider) => self.rest_over(now, provider),
            }
        }
    }

    /// The next output to carry out, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Dispatcher::handle_timeout`], and what for.
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
