//! The two ends between which a worker is tested.

mod server;

use std::{sync::Arc, time::Duration};

use backend::{BackendConfig, DemoConfig};
use base::Endpoints;
use protocol::relay::Version;
pub(crate) use server::{Pipes, ServerEnd};
pub(crate) use testkit::{DEADLINE, RawConnection as Connection, RawServer};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;
use worker::{Dialer, Event, Lend, ServerTarget, Worker, WorkerConfig, WorkerEnd};

/// The head of a stream.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A worker that runs.
pub(crate) struct RunningWorker {
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) task: JoinHandle<WorkerEnd>,
}

impl RunningWorker {
    pub(crate) fn start(config: WorkerConfig, dialer: impl Dialer) -> Self {
        Self::of(Worker::new(config, dialer).unwrap())
    }

    pub(crate) fn of(worker: Worker) -> Self {
        let (sender, events) = mpsc::channel(1024);
        let observer = Arc::new(move |event: &Event| sender.try_send(event.clone()).unwrap());
        let worker = worker.observed_by(observer);
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(worker.run(shutdown.clone()));
        Self { events, shutdown, task }
    }

    pub(crate) async fn event(&mut self) -> Event {
        timeout(DEADLINE * 60, self.events.recv()).await.unwrap().unwrap()
    }

    pub(crate) async fn ended(self) -> WorkerEnd {
        timeout(DEADLINE, self.task).await.unwrap().unwrap()
    }
}

/// A worker named `w` for one server, with these backends.
pub(crate) fn config(backends: Vec<Lend>) -> WorkerConfig {
    let server = ServerTarget::new("http://server", None).unwrap();
    let patience = Duration::ZERO;
    WorkerConfig { servers: vec![server], backends, patience, ..WorkerConfig::new("w") }
}

/// A backend with the models `m`, and `fast`, which it calls `slow`.
pub(crate) fn backend(raw: &RawServer) -> BackendConfig {
    let models = ["m", "fast=slow"].map(|entry| entry.parse().unwrap()).to_vec();
    BackendConfig { models: Some(models), ..known(raw) }
}

/// A backend that is not asked what it serves.
pub(crate) fn known(raw: &RawServer) -> BackendConfig {
    BackendConfig { endpoints: Some(Endpoints::ASSUMED), ..BackendConfig::new(raw.url()) }
}

pub(crate) fn demo() -> Lend {
    Lend::Demo(DemoConfig { tokens_per_second: 0, max_concurrent: 2 })
}

/// A worker that is registered, its server, and its only backend.
pub(crate) struct Bench {
    pub(crate) worker: RunningWorker,
    pub(crate) server: ServerEnd,
    pub(crate) raw: RawServer,
}

impl Bench {
    pub(crate) async fn new(binary: bool) -> Self {
        Self::with(binary, |_| {}).await
    }

    pub(crate) async fn with(binary: bool, change: impl FnOnce(&mut BackendConfig)) -> Self {
        Self::of(binary.then_some(Version::NEWEST), change).await
    }

    /// The same with a version of the binary form, or with the stock form.
    pub(crate) async fn of(
        version: Option<Version>,
        change: impl FnOnce(&mut BackendConfig),
    ) -> Self {
        let raw = RawServer::start().await;
        let mut backend = backend(&raw);
        change(&mut backend);
        let config = config(vec![Lend::Http(backend)]);
        let (pipes, mut servers) = Pipes::of(version);
        let worker = RunningWorker::start(
            WorkerConfig { drain_timeout: Duration::from_millis(200), ..config },
            pipes,
        );
        let mut server = servers.recv().await.unwrap();
        server.register().await;
        Self { worker, server, raw }
    }
}
