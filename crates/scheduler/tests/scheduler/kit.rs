//! A scheduler, and a provider in the hands of a test.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base::{Endpoint, Endpoints, JobId, ProviderId, Scope};
use bytes::Bytes;
use dispatch::route::LeastLoaded;
use http::{HeaderMap, StatusCode};
use scheduler::{
    Affinity, Answer, Assignment, CancelReason, Config, Ended, Head, Job, JobFacts, JobRequest,
    Membership, Meter, Observer, Offer, Provider, Scheduler, Unchanged, Usage,
};
use tokio::sync::mpsc;

pub(crate) struct Kit {
    pub(crate) scheduler: Scheduler,
    pub(crate) ended: Arc<Mutex<Vec<Ended>>>,
    next: u128,
}

/// What a provider is told.
pub(crate) enum Told {
    Assigned(Assignment),
    Canceled(JobId, CancelReason),
    Retired(bool),
}

pub(crate) struct TestProvider(mpsc::Sender<Told>);

impl Provider for TestProvider {
    fn name(&self) -> &str {
        "test"
    }

    fn assign(&self, assignment: Assignment) {
        self.0.try_send(Told::Assigned(assignment)).ok();
    }

    fn cancel(&self, job: JobId, reason: CancelReason) {
        self.0.try_send(Told::Canceled(job, reason)).ok();
    }

    fn drain(&self, _: &str, _: Duration) {}

    fn retire(&self, clean: bool) {
        self.0.try_send(Told::Retired(clean)).ok();
    }

    fn refresh(&self, _: &str) {}
}

/// A joined provider, and what it is told.
pub(crate) struct Joined {
    pub(crate) membership: Membership,
    pub(crate) told: mpsc::Receiver<Told>,
}

impl Joined {
    pub(crate) async fn assigned(&mut self) -> Assignment {
        match self.told.recv().await {
            Some(Told::Assigned(assignment)) => assignment,
            _ => panic!("expected an assignment"),
        }
    }

    pub(crate) async fn canceled(&mut self) -> (JobId, CancelReason) {
        match self.told.recv().await {
            Some(Told::Canceled(job, reason)) => (job, reason),
            _ => panic!("expected a cancellation"),
        }
    }
}

struct Watch(Arc<Mutex<Vec<Ended>>>);

impl Observer for Watch {
    fn ended(&self, _: &JobFacts, ended: &Ended) {
        self.0.lock().unwrap().push(ended.clone());
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
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Watch(Arc::clone(&ended)))];
        let scheduler = Scheduler::new(config, Box::new(LeastLoaded), observers);
        tokio::spawn(scheduler.clone().run());
        Self { scheduler, ended, next: 0 }
    }

    pub(crate) fn submit(&mut self) -> Answer {
        self.next += 1;
        let request = JobRequest {
            path_and_query: "/v1/chat/completions?x=1".into(),
            model: "m".into(),
            streaming: true,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{}"),
        };
        self.scheduler.submit(Job {
            id: JobId::from_random(self.next),
            scope: Scope::server(),
            model: "m".into(),
            targets: vec!["m".into()],
            endpoint: Endpoint::ChatCompletions,
            serve_as: Endpoints::only(Endpoint::ChatCompletions),
            translator: Arc::new(Unchanged(Endpoint::ChatCompletions)),
            key: "local".into(),
            size: 2,
            affinity: Affinity::default(),
            pinned: None,
            known: true,
            request,
            meter: Box::new(CountBytes(0)),
        })
    }

    pub(crate) fn join(&mut self, max_concurrent: u32) -> Joined {
        let (sender, told) = mpsc::channel(64);
        let membership = self.join_with(max_concurrent, Arc::new(TestProvider(sender)));
        Joined { membership, told }
    }

    pub(crate) fn join_with(
        &mut self,
        max_concurrent: u32,
        provider: Arc<dyn Provider>,
    ) -> Membership {
        self.next += 1;
        let offer = Offer {
            scope: Scope::server(),
            models: vec!["m".into()],
            max_concurrent,
            load: 0,
            max_size: u64::MAX,
            endpoints: Endpoints::ASSUMED,
        };
        self.scheduler.join(ProviderId::from_random(self.next as u64), offer, provider)
    }

    /// Jobs at providers, and jobs waiting.
    pub(crate) fn slots(&self) -> (usize, usize) {
        let status = self.scheduler.status();
        (status.in_flight, status.queue_depth)
    }

    pub(crate) fn last_ended(&self) -> Ended {
        self.ended.lock().unwrap().last().expect("a job has ended").clone()
    }
}

pub(crate) fn ok() -> Head {
    Head { status: StatusCode::OK, headers: HeaderMap::new() }
}
