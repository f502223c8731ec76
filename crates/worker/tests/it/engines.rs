//! Models that this machine runs itself, as a worker lends them.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use backend::{BackendError, Claim, Hold, HttpBackend, ModelEngines};
use base::{Endpoints, FactsByModel, LoadState, ModelFacts};
use protocol::relay::WorkerFrame;
use testkit::{RawConnection, RawServer};
use tokio::{sync::watch, time::timeout};
use worker::{Lend, LendEngines, WorkerConfig};

use crate::support::{DEADLINE, Pipes, RunningWorker, STREAM, ServerEnd, config, known};

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One model, whose server is there all the time, and how often it is in use.
#[derive(Debug)]
struct OneModel {
    server: Arc<HttpBackend>,
    users: Arc<AtomicU64>,
    load: Mutex<LoadState>,
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct User(Arc<AtomicU64>);

impl Drop for User {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Hold for User {
    fn answered(&self) {}

    fn doubt(&self) {}

    fn why_ended(&self) -> Boxed<'_, Option<BackendError>> {
        let (model, reason) = ("m".into(), "it was killed".into());
        Box::pin(async { Some(BackendError::Engine { model, reason, busy: false }) })
    }
}

impl ModelEngines for OneModel {
    fn label(&self) -> &str {
        "llama-server"
    }

    fn models(&self) -> Vec<String> {
        vec!["m".to_owned()]
    }

    fn facts(&self) -> FactsByModel {
        let load = Some(*self.load.lock().unwrap());
        FactsByModel::from([("m".to_owned(), ModelFacts { load, ..ModelFacts::default() })])
    }

    fn endpoints(&self) -> Option<Endpoints> {
        Some(Endpoints::ASSUMED)
    }

    fn claim<'a>(&'a self, model: &'a str) -> Boxed<'a, Result<Claim, BackendError>> {
        assert_eq!(model, "m");
        self.users.fetch_add(1, Ordering::SeqCst);
        let claim = Claim::new(Arc::clone(&self.server), User(Arc::clone(&self.users)));
        Box::pin(async { Ok(claim) })
    }

    fn load<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn unload<'a>(&'a self, _: &'a str) -> Boxed<'a, Result<(), BackendError>> {
        Box::pin(async { Ok(()) })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

struct EngineBench {
    engines: Arc<OneModel>,
    raw: RawServer,
    server: ServerEnd,
    _worker: RunningWorker,
}

impl EngineBench {
    async fn new() -> Self {
        let raw = RawServer::start().await;
        let engines = Arc::new(OneModel {
            server: Arc::new(HttpBackend::new(&known(&raw)).unwrap()),
            users: Arc::default(),
            load: Mutex::new(LoadState::Unloaded),
            changes: watch::Sender::default(),
        });
        let lend = LendEngines { engines: Arc::clone(&engines) as Arc<_>, max_concurrent: 8 };
        let poll_interval = Duration::from_secs(3600);
        let config = WorkerConfig { poll_interval, ..config(vec![Lend::Engines(lend)]) };
        let (pipes, mut servers) = Pipes::new(true);
        let worker = RunningWorker::start(config, pipes);
        let mut server = servers.recv().await.unwrap();
        let register = server.register().await;
        assert_eq!((&*register.models, register.max_concurrent), (&["m".to_owned()][..], 8));
        Self { engines, raw, server, _worker: worker }
    }

    fn users(&self) -> u64 {
        self.engines.users.load(Ordering::SeqCst)
    }

    async fn until_unused(&self) {
        let unused = async {
            while self.users() > 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(DEADLINE, unused).await.unwrap();
    }

    /// The first bytes of an answer that goes on.
    async fn begun(&mut self) -> RawConnection {
        self.server.request(1, true, r#"{"model":"m"}"#);
        let (mut connection, _) = self.raw.request().await;
        connection.write(STREAM).await;
        connection.write("3\r\nabc\r\n").await;
        assert!(matches!(self.server.frame().await, WorkerFrame::Head { .. }));
        assert_eq!(self.server.bytes(1).await, "abc");
        assert_eq!(self.users(), 1);
        connection
    }
}

#[tokio::test]
async fn a_model_is_in_use_until_its_answer_has_ended() {
    let mut bench = EngineBench::new().await;
    let mut connection = bench.begun().await;
    connection.write("0\r\n\r\n").await;
    assert!(matches!(bench.server.frame().await, WorkerFrame::End { .. }));
    bench.until_unused().await;
}

#[tokio::test]
async fn a_cancelled_job_gives_its_model_back() {
    let mut bench = EngineBench::new().await;
    let mut connection = bench.begun().await;
    bench.server.cancel(1);
    connection.closed().await;
    bench.until_unused().await;
}

#[tokio::test]
async fn a_server_that_dies_ends_its_job_with_the_reason() {
    let mut bench = EngineBench::new().await;
    drop(bench.begun().await);
    let WorkerFrame::Fail { failure, .. } = bench.server.frame().await else { panic!() };
    let words = (failure.code.as_str(), failure.message.as_str());
    assert_eq!(words, ("engine_failed", "the model m: it was killed"));
    bench.until_unused().await;
}

#[tokio::test]
async fn a_load_is_reported_at_once() {
    let mut bench = EngineBench::new().await;
    *bench.engines.load.lock().unwrap() = LoadState::Loading;
    bench.engines.changes.send_modify(|number| *number += 1);
    let update = bench.server.models().await;
    let text = serde_json::to_string(&update).unwrap();
    assert!(text.contains(r#""load":"loading""#), "{text}");
}
