//! The offers of a worker, and how they change.

use std::time::Duration;

use backend::BackendConfig;
use base::LoadState;
use protocol::relay::{ModelsRefresh, RegisterAck, STOCK_VERSION, ServerMessage, WorkerMessage};
use testkit::{MockOllama, OllamaModel};
use tokio::sync::watch;
use worker::{Event, Lend, Worker, WorkerConfig, WorkerEnd};

use crate::support::{Bench, Pipes, RawServer, RunningWorker, ServerEnd, config, demo, known};

fn refresh() -> ServerMessage {
    ServerMessage::ModelsRefresh(ModelsRefresh::default())
}

async fn list(raw: &RawServer, models: &[&str]) {
    // Its version is asked for once its list is known, and matters to no offer.
    let (mut connection, request) = loop {
        let (mut connection, request) = raw.request().await;
        if request.line != "GET /version" {
            break (connection, request);
        }
        connection.json("404 Not Found", "connection: close\r\n", "{}").await;
    };
    assert_eq!(request.line, "GET /v1/models");
    let items: Vec<_> =
        models.iter().map(|model| format!(r#"{{"id":"{model}","owned_by":"vllm"}}"#)).collect();
    let list = format!(r#"{{"data":[{}]}}"#, items.join(","));
    connection.json("200 OK", "connection: close\r\n", &list).await;
}

#[tokio::test]
async fn a_worker_registers_with_its_offer() {
    let (pipes, mut servers) = Pipes::new(false);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let mut server = servers.recv().await.unwrap();
    let register = server.register().await;
    assert_eq!((register.worker_name.as_str(), register.max_concurrent), ("w", 2));
    assert_eq!(register.models, ["warren-demo"]);
    assert_eq!(register.protocol_version.as_deref(), Some(STOCK_VERSION));
    assert!(matches!(worker.event().await, Event::Models { .. }));
    let Event::Connected { worker_id, binary: false, .. } = worker.event().await else { panic!() };
    assert_eq!(worker_id, "w-1");
}

#[tokio::test]
async fn each_backend_has_a_link_of_its_own() {
    let raw = RawServer::start().await;
    let models = Some(vec!["m".parse().unwrap()]);
    let http = BackendConfig { models, ..known(&raw) };
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(config(vec![demo(), Lend::Http(http)]), pipes);
    let mut names = Vec::new();
    for _ in 0..2 {
        let mut server = servers.recv().await.unwrap();
        names.push(server.register().await.worker_name);
    }
    names.sort();
    assert_eq!(names, [format!("w/127.0.0.1:{}", raw.port), "w/demo".to_owned()]);
}

#[tokio::test]
async fn found_backends_come_and_go_while_the_worker_runs() {
    let raw = RawServer::start().await;
    let models = Some(vec!["m".parse().unwrap()]);
    let http = Lend::Http(BackendConfig { models, ..known(&raw) });
    let (finds, found) = watch::channel(Vec::new());
    let (pipes, mut servers) = Pipes::new(true);
    let worker = Worker::following(config(Vec::new()), found, pipes).unwrap();
    let mut worker = RunningWorker::of(worker);
    finds.send_replace(vec![demo()]);
    let mut of_demo = servers.recv().await.unwrap();
    let registered = of_demo.register().await;
    assert_eq!((registered.worker_name.as_str(), registered.max_concurrent), ("w", 2));
    finds.send_replace(vec![http.clone(), demo()]);
    let mut of_http = servers.recv().await.unwrap();
    assert_eq!(of_http.register().await.worker_name, format!("w/127.0.0.1:{}", raw.port));
    finds.send_replace(vec![http]);
    while worker.event().await != (Event::Withdrawn { backend: "demo".to_owned() }) {}
    assert_eq!(of_demo.models().await.models, Vec::<String>::new());
    worker.shutdown.cancel();
    assert_eq!(worker.ended().await, WorkerEnd::default());
}

#[tokio::test]
async fn a_fixed_list_is_reported_again_when_asked_for() {
    let mut bench = Bench::new(false).await;
    bench.server.say(&refresh());
    assert_eq!(bench.server.models().await.models, ["fast", "m"]);
}

#[tokio::test]
async fn a_change_at_the_backend_is_reported_when_it_is_seen() {
    let raw = RawServer::start().await;
    let (pipes, mut servers) = Pipes::new(true);
    let config = WorkerConfig {
        poll_interval: Duration::from_secs(3600),
        ..config(vec![Lend::Http(known(&raw))])
    };
    let _worker = RunningWorker::start(config, pipes);
    list(&raw, &["a"]).await;
    let mut server = servers.recv().await.unwrap();
    assert_eq!(server.register().await.models, ["a"]);
    server.say(&refresh());
    list(&raw, &["b", "a"]).await;
    assert_eq!(server.models().await.models, ["a", "b"]);
}

#[tokio::test]
async fn a_backend_that_is_gone_offers_nothing_until_it_is_back() {
    let (raw, spare) = RawServer::with_spare();
    let (pipes, mut servers) = Pipes::new(true);
    let config = WorkerConfig {
        poll_interval: Duration::from_millis(10),
        ..config(vec![Lend::Http(known(&raw))])
    };
    let mut worker = RunningWorker::start(config, pipes);
    list(&raw, &["a"]).await;
    let mut server = servers.recv().await.unwrap();
    let WorkerMessage::Register(register) = server.message().await else { panic!() };
    assert_eq!(register.models, ["a"]);
    server.say(&ServerMessage::RegisterAck(RegisterAck::default()));
    assert_eq!(server.models().await.models, ["a"]);
    drop(raw);
    assert!(server.models().await.models.is_empty());
    let raw = RawServer::on(spare);
    list(&raw, &["a"]).await;
    assert_eq!(server.models().await.models, ["a"]);
    let mut failed = false;
    while let Ok(event) = worker.events.try_recv() {
        failed |= matches!(event, Event::BackendFailed { .. });
    }
    assert!(failed);
}

#[tokio::test]
async fn a_model_that_is_loaded_is_reported_and_a_look_without_news_is_not() {
    let model = OllamaModel::new("m");
    let ollama = MockOllama::start(vec![model.clone()]).await;
    let (pipes, mut servers) = Pipes::new(true);
    let config = WorkerConfig {
        poll_interval: Duration::from_secs(3600),
        ..config(vec![Lend::Http(BackendConfig::new(ollama.url()))])
    };
    let _worker = RunningWorker::start(config, pipes);
    let mut server = servers.recv().await.unwrap();
    let WorkerMessage::Register(register) = server.message().await else { panic!() };
    assert_eq!(register.models, ["m"]);
    server.say(&ServerMessage::RegisterAck(RegisterAck::default()));
    let load = async |server: &mut ServerEnd, wanted| loop {
        let update = server.models().await;
        if update.facts.get("m").and_then(|facts| facts.load) == Some(wanted) {
            return update;
        }
    };
    load(&mut server, LoadState::Unloaded).await;
    ollama.set_models(vec![model.clone().loaded_with(9)]);
    server.say(&refresh());
    let update = load(&mut server, LoadState::Loaded).await;
    assert_eq!((update.models, update.facts["m"].context_tokens), (vec!["m".to_owned()], Some(9)));
    server.say(&refresh());
    assert_eq!(server.models().await.facts["m"].load, Some(LoadState::Loaded));
    ollama.set_models(vec![model, OllamaModel::new("n")]);
    server.say(&refresh());
    assert_eq!(server.models().await.models, ["m", "n"], "the look before had no news");
}
