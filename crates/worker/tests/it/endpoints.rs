//! The endpoints of its backend that a worker announces.

use std::time::Duration;

use backend::BackendConfig;
use base::{Endpoint, Endpoints};
use protocol::relay::ModelsUpdate;
use serde_json::json;
use testkit::MockBackend;
use worker::{Lend, WorkerConfig};

use crate::support::{Pipes, RunningWorker, ServerEnd, config, demo};

const CHAT: Endpoints = Endpoints::only(Endpoint::ChatCompletions);
const MESSAGES: Endpoints = Endpoints::only(Endpoint::Messages);

async fn chat_only() -> MockBackend {
    let backend = MockBackend::start(&["m"]).await;
    backend.answers_only(&[Endpoint::ChatCompletions.path()]);
    backend
}

/// A worker that asks its backend again and again, and its server's end.
async fn start(backend: BackendConfig) -> (RunningWorker, ServerEnd) {
    let (pipes, mut servers) = Pipes::new(false);
    let config = WorkerConfig {
        poll_interval: Duration::from_millis(10),
        ..config(vec![Lend::Http(backend)])
    };
    let worker = RunningWorker::start(config, pipes);
    (worker, servers.recv().await.unwrap())
}

/// The next update that tells something else than the last.
async fn changed(server: &mut ServerEnd, last: &ModelsUpdate) -> ModelsUpdate {
    loop {
        let update = server.models().await;
        if update != *last {
            return update;
        }
    }
}

fn update(models: &[&str], endpoints: Endpoints) -> ModelsUpdate {
    let models = models.iter().map(|&model| model.to_owned()).collect();
    ModelsUpdate { models, endpoints: Some(endpoints), ..ModelsUpdate::default() }
}

#[tokio::test]
async fn the_registration_lists_the_backends_endpoints() {
    let backend = chat_only().await;
    let (_worker, mut server) = start(BackendConfig::new(backend.url())).await;
    assert_eq!(server.register().await.endpoints, Some(CHAT));
    assert_eq!(backend.counts().started, 0, "only probes were sent");
}

#[tokio::test]
async fn changes_of_a_warrens_list_are_announced() {
    let backend = chat_only().await;
    let list = |paths: &[&str]| {
        backend.set_get(
            "/v1/models",
            json!({"data": [{"id": "m", "owned_by": "warren", "endpoints": paths}]}),
        );
    };
    list(&["/v1/messages", "/v1/rerank"]);
    let (_worker, mut server) = start(BackendConfig::new(backend.url())).await;
    let first = CHAT.with(Endpoint::Rerank);
    assert_eq!(
        server.register().await.endpoints,
        Some(first),
        "what is translated there is asked for"
    );
    list(&["/v1/audio/speech"]);
    let offer = changed(&mut server, &update(&["m"], first)).await;
    assert_eq!(offer.endpoints, Some(CHAT.with(Endpoint::Speech)));
    assert_eq!(backend.counts().started, 0, "only probes were sent");
}

#[tokio::test]
async fn the_demo_lists_its_models() {
    let (pipes, mut servers) = Pipes::new(false);
    let _worker = RunningWorker::start(config(vec![demo()]), pipes);
    let offer = servers.recv().await.unwrap().register().await.endpoints.unwrap();
    assert!(offer.contains(Endpoint::Messages) && !offer.contains(Endpoint::Embeddings));
}

#[tokio::test]
async fn another_backend_at_the_same_place_is_announced_when_it_is_back() {
    let backend = chat_only().await;
    let (_worker, mut server) = start(BackendConfig::new(backend.url())).await;
    server.register().await;
    let address = backend.address();
    drop(backend);
    let gone = changed(&mut server, &update(&["m"], CHAT)).await;
    assert!(gone.models.is_empty());
    let backend = MockBackend::start_at(address, &[]).await;
    backend.answers_only(&[Endpoint::Messages.path()]);
    backend.set_models(&["m"]);
    let mut last = changed(&mut server, &gone).await;
    while last != update(&["m"], MESSAGES) {
        last = changed(&mut server, &last).await;
    }
}

#[tokio::test]
async fn with_a_fixed_list_a_request_that_fails_to_connect_triggers_a_poll() {
    let backend = chat_only().await;
    let models = Some(vec!["m".parse().unwrap()]);
    let config = BackendConfig { models, ..BackendConfig::new(backend.url()) };
    let (_worker, mut server) = start(config).await;
    assert_eq!(server.register().await.endpoints, Some(CHAT));
    let address = backend.address();
    drop(backend);
    server.request(1, false, r#"{"model":"m"}"#);
    assert_eq!(server.complete().await.status_code, 502);
    let backend = MockBackend::start_at(address, &["m"]).await;
    backend.answers_only(&[Endpoint::Messages.path()]);
    assert_eq!(server.models().await.endpoints, Some(MESSAGES));
}
