//! Shared helpers of the unit tests: a dispatcher on a clock that tests move by hand.

use std::time::{Duration, Instant};

use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, Scope};

use crate::{
    Affinity, CancelReason, Candidate, Config, Dispatcher, Distance, Ending, Input, JobSpec,
    LeastLoaded, LeaveReason, Offer, Output, Route, Start, Verdict,
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn job(number: u128) -> JobId {
    JobId::from_random(number)
}

pub(crate) fn provider(number: u64) -> ProviderId {
    ProviderId::from_random(number)
}

/// A job of model `m` and key `k`, known, of one byte.
pub(crate) fn spec(number: u128) -> JobSpec {
    JobSpec {
        id: job(number),
        scope: Scope::server(),
        model: "m".into(),
        fallbacks: Vec::new(),
        endpoint: Endpoint::ChatCompletions,
        serve_as: Endpoints::only(Endpoint::ChatCompletions),
        key: KeyId::from("k"),
        page_session: None,
        size: 1,
        affinity: Affinity::default(),
        pinned: None,
        lent: false,
        route: Route::default(),
        clouds: false,
        known: true,
    }
}

/// The same job with these fallbacks.
pub(crate) fn or_else(number: u128, fallbacks: &[&str]) -> JobSpec {
    let fallbacks = fallbacks.iter().map(|model| ModelName::from(*model)).collect();
    JobSpec { fallbacks, ..spec(number) }
}

/// An idle provider with room for one job that has never had one.
pub(crate) fn candidate(number: u64) -> Candidate {
    Candidate {
        provider: provider(number),
        load: 0,
        capacity: 1,
        last_given: 0,
        held: 0,
        distance: Distance::Here,
        speed: None,
        throttle: 100,
        start: Start::AtOnce,
    }
}

/// An offer of model `m` for this number of concurrent jobs.
pub(crate) fn offer(max_concurrent: u32) -> Offer {
    let models = vec![ModelName::from("m")];
    Offer {
        scope: Scope::server(),
        models,
        unloaded: Vec::new(),
        max_concurrent,
        load: 0,
        max_size: u64::MAX,
        endpoints: Endpoints::ASSUMED,
        distance: Distance::Here,
        lingers: false,
        acknowledges: false,
        borrowed: false,
    }
}

/// An offer of these models, for one job at a time.
pub(crate) fn offer_of(models: &[&str]) -> Offer {
    Offer { models: models.iter().map(|model| ModelName::from(*model)).collect(), ..offer(1) }
}

pub(crate) fn assign(number: u128, to: u64, attempt: u32) -> Output {
    assign_for(number, to, "m", attempt)
}

pub(crate) fn assign_for(number: u128, to: u64, model: &str, attempt: u32) -> Output {
    assign_as(number, to, model, Endpoints::ASSUMED, attempt)
}

pub(crate) fn assign_as(
    number: u128,
    to: u64,
    model: &str,
    endpoints: Endpoints,
    attempt: u32,
) -> Output {
    let (job, provider) = (job(number), provider(to));
    Output::Assign { job, provider, model: model.into(), endpoints, attempt }
}

pub(crate) fn cancel(number: u128, at: u64, reason: CancelReason) -> Output {
    Output::Cancel { job: job(number), provider: provider(at), reason }
}

pub(crate) fn end(number: u128, ending: Ending) -> Output {
    Output::End { job: job(number), ending }
}

pub(crate) fn retire(number: u64, clean: bool) -> Output {
    Output::Retire { provider: provider(number), clean }
}

pub(crate) struct Bench {
    pub(crate) dispatcher: Dispatcher,
    pub(crate) now: Instant,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let dispatcher = Dispatcher::new(config, Box::new(LeastLoaded));
        Self { dispatcher, now: Instant::now() }
    }

    pub(crate) fn input(&mut self, input: Input) -> Vec<Output> {
        self.dispatcher.handle(self.now, input);
        self.outputs()
    }

    /// Advances the clock and handles each deadline on the way at its time.
    pub(crate) fn wait(&mut self, time: Duration) -> Vec<Output> {
        let end = self.now + time;
        let mut outputs = Vec::new();
        while let Some((at, _)) = self.dispatcher.poll_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.dispatcher.handle_timeout(self.now);
            outputs.extend(self.outputs());
        }
        self.now = end;
        outputs
    }

    pub(crate) fn join(&mut self, number: u64, offer: Offer) -> Vec<Output> {
        self.input(Input::Join { provider: provider(number), offer })
    }

    pub(crate) fn leave(&mut self, number: u64) -> Vec<Output> {
        self.input(Input::Leave { provider: provider(number), why: LeaveReason::Closed })
    }

    pub(crate) fn drain(&mut self, number: u64, grace: Duration) -> Vec<Output> {
        self.input(Input::Drain { provider: provider(number), grace })
    }

    pub(crate) fn submit(&mut self, spec: JobSpec) -> Vec<Output> {
        self.input(Input::Submit(spec))
    }

    pub(crate) fn begun(&mut self, number: u128) -> Vec<Output> {
        self.input(Input::Begun { job: job(number), resumable: None })
    }

    pub(crate) fn finished(&mut self, number: u128, by: u64, verdict: Verdict) -> Vec<Output> {
        let (job, provider) = (job(number), provider(by));
        self.input(Input::Finished { job, provider, verdict, tokens: None })
    }

    /// Reports an answer of this many tokens.
    pub(crate) fn answered(&mut self, number: u128, by: u64, tokens: u64) -> Vec<Output> {
        let (job, provider, verdict) = (job(number), provider(by), Verdict::Answered);
        self.input(Input::Finished { job, provider, verdict, tokens: Some(tokens) })
    }

    pub(crate) fn client_gone(&mut self, number: u128) -> Vec<Output> {
        self.input(Input::ClientGone { job: job(number) })
    }

    /// Asserts that nothing is left of any job.
    pub(crate) fn assert_no_jobs(&self) {
        assert!(self.dispatcher.is_idle() && self.dispatcher.queues.is_empty());
        assert_eq!((self.dispatcher.in_flight(), self.dispatcher.queue_depth()), (0, 0));
    }

    fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.dispatcher.poll_output()).collect()
    }
}
