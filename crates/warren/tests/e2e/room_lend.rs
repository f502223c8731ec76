//! Our own participants in rooms of the real server: over the relay link, and as stock participants.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Daemon, MockBackend, Reply, eventually, form, media_backend, sound, within,
};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use worker::{
    BackendConfig, Event, JoinRoom, Lend, NetDialer, Protocol, ServerTarget, Worker, WorkerConfig,
    WorkerEnd,
};

use crate::common::serve;

/// A worker in a room, in this process.
struct Lender {
    events: mpsc::Receiver<Event>,
    task: JoinHandle<WorkerEnd>,
}

struct Bench {
    daemon: Daemon,
    code: String,
    mock: MockBackend,
}

impl Bench {
    async fn new(room: Value) -> Self {
        let daemon = serve().start().await;
        let made = daemon.client().post_json("/v1/rooms", &room).await.json();
        let code = made["data"]["room"]["code"].as_str().unwrap().to_owned();
        Self { daemon, code, mock: MockBackend::start(&["m"]).await }
    }

    fn lend(&self, protocol: Protocol, password: Option<&str>, join: JoinRoom) -> Lender {
        let server = ServerTarget::new(&self.daemon.url(), password.map(Into::into)).unwrap();
        let config = WorkerConfig {
            servers: vec![server.in_room(join)],
            backends: vec![Lend::Http(BackendConfig::new(self.mock.url()))],
            protocol,
            heartbeat: Duration::from_millis(100),
            ..WorkerConfig::new("w")
        };
        let (told, events) = mpsc::channel(1024);
        let tell = Arc::new(move |event: &Event| drop(told.try_send(event.clone())));
        let worker = Worker::new(config, NetDialer).unwrap().observed_by(tell);
        Lender { events, task: tokio::spawn(worker.run(CancellationToken::new())) }
    }

    fn ann(&self) -> JoinRoom {
        JoinRoom::new(&self.code, "ann", "Ann")
    }

    /// Asks the room, which has this password.
    async fn ask(&self, model: &str, password: &str) -> testkit::Response {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        let path = format!("/rooms/{}/v1/chat/completions", self.code);
        self.daemon.client().with_token(password).post_json(&path, &body).await
    }

    async fn participants(&self, password: &str) -> Vec<Value> {
        let client = self.daemon.client().with_token(password);
        let list = client.get(&format!("/v1/rooms/{}/participants", self.code)).await.json();
        list["data"].as_array().unwrap().clone()
    }

    async fn has_online(&self, password: &str) {
        let online =
            async || self.participants(password).await.iter().any(|one| one["status"] == "online");
        eventually("a participant that is online", DEADLINE, online).await;
    }
}

impl Lender {
    /// Whether it came by a tunnel.
    async fn joined(&mut self) -> bool {
        loop {
            let event = within("joining", self.events.recv()).await.expect("the worker is there");
            if let Event::Joined { tunnel, session_token, .. } = event {
                assert!(session_token.is_some());
                return tunnel;
            }
        }
    }
}

async fn serves(protocol: Protocol, by_tunnel: bool) {
    let bench = Bench::new(json!({"name": "Room", "password": "pw"})).await;
    let mut lender = bench.lend(protocol, Some("pw"), bench.ann());
    assert_eq!(lender.joined().await, by_tunnel);
    bench.has_online("pw").await;
    for model in ["*", "ann", "model:m", "m"] {
        bench.mock.then(Reply::json(200, &json!({"choices": [], "n": 1})));
        let answer = bench.ask(model, "pw").await;
        assert_eq!((answer.status, answer.json()["n"].clone()), (200, json!(1)), "{model}");
    }
    lender.task.abort();
}

/// What a room says that is asked for sound by these selectors: of one whose participant is a worker, and of one whose is
/// a stock participant.
#[tokio::test]
async fn sound_reaches_a_participant_that_is_a_worker_and_no_other() {
    for (protocol, status) in [(Protocol::Auto, 200), (Protocol::Tunnel, 404)] {
        let room = Bench::new(json!({"name": "Room", "password": "pw"})).await;
        let bench = Bench { mock: media_backend(&["m"]).await, ..room };
        let mut lender = bench.lend(protocol, Some("pw"), bench.ann());
        lender.joined().await;
        bench.has_online("pw").await;
        let client = bench.daemon.client().with_token("pw");
        for model in ["ann", "model:m", "m"] {
            let path = format!("/rooms/{}/v1/audio/transcriptions", bench.code);
            let request = client.request("POST", &path);
            let request = request.header("content-type", "multipart/form-data; boundary=b");
            let fields =
                [("name=file; filename=a", &b"\0\xff"[..]), ("name=model", model.as_bytes())];
            let answer = request.body(form("b", &fields)).send().await;
            assert_eq!(answer.status, status, "{model}: {}", answer.text());
            if status == 200 {
                assert!(answer.json()["text"].as_str().unwrap().starts_with("m 2 "), "{model}");
                let path = format!("/rooms/{}/v1/audio/speech", bench.code);
                let spoken = json!({"model": model, "input": "hello", "voice": "a"});
                let spoken = client.post_json(&path, &spoken).await;
                assert_eq!(spoken.header("content-type"), Some("audio/mpeg"));
                assert_eq!(spoken.body, sound("hello"));
            }
        }
        lender.task.abort();
    }
}

#[tokio::test]
async fn a_participant_over_the_relay_link_serves_every_selector() {
    serves(Protocol::Auto, false).await;
}

#[tokio::test]
async fn a_stock_participant_of_ours_serves_every_selector() {
    serves(Protocol::Tunnel, true).await;
}

#[tokio::test]
async fn a_server_that_restarts_gets_its_participants_back() {
    let mut bench = Bench::new(json!({"name": "Room"})).await;
    let mut lenders = Vec::new();
    for (protocol, id) in [(Protocol::Relay, "one"), (Protocol::Tunnel, "two")] {
        let mut lender = bench.lend(protocol, None, JoinRoom::new(&bench.code, id, id));
        lender.joined().await;
        lenders.push(lender);
    }
    bench.daemon.kill_and_restart().await;
    for lender in &mut lenders {
        lender.joined().await;
    }
    for id in ["one", "two"] {
        let answers = async || {
            bench.mock.then(Reply::json(200, &json!({"choices": []})));
            bench.ask(id, "").await.status == 200
        };
        eventually("an answer after the restart", DEADLINE, answers).await;
    }
    lenders.iter().for_each(|lender| lender.task.abort());
}
