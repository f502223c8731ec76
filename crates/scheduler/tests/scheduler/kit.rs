//! A scheduler, and a provider in the hands of a test.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{Continuation, Endpoint, Endpoints, FactsByModel, JobId, ModelFacts, ProviderId, Scope};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use http::{HeaderMap, StatusCode};
use scheduler::{
    Answer, Assignment, Break, CancelReason, Config, Distance, Head, Job, JobEnd, JobFacts,
    JobRequest, Membership, Meter, Observer, Offer, Provider, Scheduler, Usage,
};
use tokio::sync::mpsc;

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) ended: Arc<Mutex<Vec<(JobFacts, JobEnd)>>>,
    pub(crate) breaks: Arc<Mutex<Vec<Break>>>,
    next: u128,
}

/// A call to a provider.
pub(crate) enum ProviderCall {
    Assigned(Assignment),
    Canceled(JobId, CancelReason),
}

pub(crate) struct TestProvider {
    name: &'static str,
    facts: Arc<FactsByModel>,
    calls: mpsc::Sender<ProviderCall>,
}

impl Provider for TestProvider {
    fn name(&self) -> &str {
        self.name
    }

    fn assign(&self, assignment: Assignment) {
        self.calls.try_send(ProviderCall::Assigned(assignment)).ok();
    }

    fn cancel(&self, job: JobId, reason: CancelReason) {
        self.calls.try_send(ProviderCall::Canceled(job, reason)).ok();
    }

    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, _: bool) {}

    fn refresh(&self, _: &str) {}

    fn facts(&self) -> Arc<FactsByModel> {
        Arc::clone(&self.facts)
    }
}

/// A joined provider, and what it is told.
pub(crate) struct JoinedProvider {
    pub(crate) membership: Membership,
    pub(crate) calls: mpsc::Receiver<ProviderCall>,
}

impl JoinedProvider {
    pub(crate) async fn assigned(&mut self) -> Assignment {
        match self.calls.recv().await {
            Some(ProviderCall::Assigned(assignment)) => assignment,
            _ => panic!("expected an assignment"),
        }
    }

    pub(crate) async fn canceled(&mut self) -> (JobId, CancelReason) {
        match self.calls.recv().await {
            Some(ProviderCall::Canceled(job, reason)) => (job, reason),
            _ => panic!("expected a cancellation"),
        }
    }
}

struct Watch(Arc<Mutex<Vec<(JobFacts, JobEnd)>>>, Arc<Mutex<Vec<Break>>>);

impl Observer for Watch {
    fn broke_off(&self, _: &JobFacts, broken: &Break) {
        self.1.lock().unwrap().push(broken.clone());
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        self.0.lock().unwrap().push((job.clone(), ended.clone()));
    }
}

struct CountBytes(u64);

impl Meter for CountBytes {
    fn feed(&mut self, chunk: &[u8]) {
        self.0 += chunk.len() as u64;
    }

    fn usage(&self) -> Usage {
        Usage { completion_tokens: Some(self.0), ..Usage::default() }
    }
}

impl Kit {
    pub(crate) fn new(config: Config) -> Self {
        let ended = Arc::new(Mutex::new(Vec::new()));
        let breaks = Arc::default();
        let watch = Watch(Arc::clone(&ended), Arc::clone(&breaks));
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(watch)];
        let scheduler = Scheduler::new(config, Box::new(LeastLoaded), observers);
        tokio::spawn(scheduler.clone().run());
        Self { scheduler, ended, breaks, next: 0 }
    }

    pub(crate) fn submit(&mut self) -> Answer {
        let job = self.job();
        self.scheduler.submit(job)
    }

    /// A job of the alias `fast`, which stands for `m`, then `n`.
    pub(crate) fn alias(&mut self) -> Job {
        Job { model: "fast".into(), targets: vec!["m".into(), "n".into()], ..self.job() }
    }

    /// A chat completion of model `m`.
    pub(crate) fn job(&mut self) -> Job {
        self.next += 1;
        let request = JobRequest {
            method: http::Method::POST,
            path_and_query: "/v1/chat/completions?x=1".into(),
            model: "m".into(),
            streaming: true,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{}"),
        };
        let id = JobId::from_random(self.next);
        Job::new(id, Endpoint::ChatCompletions, request, Box::new(CountBytes(0)))
    }

    pub(crate) fn join(&mut self, max_concurrent: u32) -> JoinedProvider {
        self.join_as("test", offer(max_concurrent))
    }

    /// A provider of this model, for one job at once.
    pub(crate) fn serving(&mut self, name: &'static str, model: &str) -> JoinedProvider {
        self.join_as(name, Offer { models: vec![model.into()], ..offer(1) })
    }

    pub(crate) fn join_as(&mut self, name: &'static str, offer: Offer) -> JoinedProvider {
        self.join_knowing(name, offer, FactsByModel::default())
    }

    /// Joins a provider for one job, which goes on with answers for model `m`.
    pub(crate) fn join_continuing(&mut self, name: &'static str) -> JoinedProvider {
        let continuation = Some(Continuation::LastMessage);
        let facts = ModelFacts { continuation, ..ModelFacts::default() };
        self.join_knowing(name, offer(1), FactsByModel::from([("m".to_owned(), facts)]))
    }

    fn join_knowing(
        &mut self,
        name: &'static str,
        offer: Offer,
        facts: FactsByModel,
    ) -> JoinedProvider {
        let (sender, calls) = mpsc::channel(64);
        let facts = Arc::new(facts);
        let known = Arc::clone(&facts);
        let provider = Arc::new(TestProvider { name, facts: known, calls: sender });
        let membership = self.join_offering(offer, provider);
        membership.memory(&facts);
        JoinedProvider { membership, calls }
    }

    pub(crate) fn join_with(
        &mut self,
        max_concurrent: u32,
        provider: Arc<dyn Provider>,
    ) -> Membership {
        self.join_offering(offer(max_concurrent), provider)
    }

    fn join_offering(&mut self, offer: Offer, provider: Arc<dyn Provider>) -> Membership {
        self.next += 1;
        self.scheduler.join(ProviderId::from_random(self.next as u64), offer, provider)
    }

    /// Jobs at providers, and jobs waiting.
    pub(crate) fn slots(&self) -> (usize, usize) {
        let status = self.scheduler.status();
        (status.in_flight, status.queue_depth)
    }

    pub(crate) fn last_ended(&self) -> JobEnd {
        self.ended.lock().unwrap().last().expect("a job has ended").1.clone()
    }
}

/// Model `m`, in every shape.
pub(crate) fn offer(max_concurrent: u32) -> Offer {
    Offer {
        scope: Scope::server(),
        models: vec!["m".into()],
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

pub(crate) fn ok() -> Head {
    Head { status: StatusCode::OK, headers: HeaderMap::new() }
}
