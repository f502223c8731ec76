//! A worker that joins a room of a stock-shaped hub, over real sockets.

use std::time::Duration;

use backend::BackendConfig;
use serde_json::json;
use testkit::{DEADLINE, FakeHub, HubTunnel, MockBackend, RawServer, Reply, eventually};
use worker::{
    Event, GiveUpReason, JoinRoom, Lend, NetDialer, Protocol, ServerTarget, WorkerConfig,
};

use crate::support::{Connection, RunningWorker, STREAM, config, known};

const ROOM: &str = "ABC123";
const PUT: &str = "PUT /v1/rooms/ABC123/participants/p1";
const HEARTBEAT: &str = "POST /v1/rooms/ABC123/participants/p1/heartbeat";
const DELETE: &str = "DELETE /v1/rooms/ABC123/participants/p1";

fn as_participant(hub: &FakeHub, join: JoinRoom, backend: BackendConfig) -> WorkerConfig {
    let server = ServerTarget::new(&hub.url(), Some("pw".into())).unwrap();
    WorkerConfig {
        servers: vec![server.in_room(join)],
        protocol: Protocol::Tunnel,
        heartbeat: Duration::from_millis(50),
        ..config(vec![Lend::Http(backend)])
    }
}

fn ann() -> JoinRoom {
    JoinRoom::new(ROOM, "p1", "Ann")
}

fn lends(raw: &RawServer) -> BackendConfig {
    let models = Some(vec!["m=real".parse().unwrap()]);
    BackendConfig { models, max_concurrent: 2, ..known(raw) }
}

/// A participant that lends `m`, two requests at once, its hub and its backend.
struct Bench {
    worker: RunningWorker,
    hub: FakeHub,
    tunnel: HubTunnel,
    raw: RawServer,
}

impl Bench {
    async fn new() -> Self {
        Self::as_who(ann()).await
    }

    async fn as_who(join: JoinRoom) -> Self {
        Self::with(FakeHub::start(ROOM).await, join).await
    }

    async fn at(hub: FakeHub) -> Self {
        Self::with(hub, ann()).await
    }

    async fn with(hub: FakeHub, join: JoinRoom) -> Self {
        let raw = RawServer::start().await;
        let worker = RunningWorker::start(as_participant(&hub, join, lends(&raw)), NetDialer);
        let tunnel = hub.tunnel().await;
        Self { worker, hub, tunnel, raw }
    }

    async fn ask(&self, id: &str, stream: bool) {
        self.ask_at("/v1/chat/completions", id, stream).await;
    }

    async fn ask_at(&self, path: &str, id: &str, stream: bool) {
        let body = json!({"model": "m", "stream": stream, "messages": []});
        self.tunnel.ask_at(path, id, &body, stream).await;
    }

    /// Why it gave up, and how often it has left the room.
    async fn gave_up(mut self) -> (GiveUpReason, usize) {
        loop {
            if let Event::GaveUp { why, .. } = self.worker.event().await {
                assert_eq!(self.worker.ended().await.gave_up, Some(why.clone()));
                return (why, self.hub.heard_at(DELETE).len());
            }
        }
    }
}

async fn chunk(connection: &mut Connection, text: &str) {
    connection.write(format!("{:x}\r\n{text}\r\n", text.len())).await;
}

#[tokio::test]
async fn a_participant_joins_identifies_itself_and_sends_heartbeats() {
    let mut bench = Bench::new().await;
    let put = &bench.hub.hears(PUT, 1).await[0].body;
    assert_eq!((&put["nickname"], &put["model"]), (&json!("Ann"), &json!("m")));
    assert_eq!((&put["password"], &put["maxConcurrent"]), (&json!("pw"), &json!(2)));
    assert_eq!(put["endpoint"], format!("{}/", bench.raw.url()));
    let both = json!({"openResponses": "supported", "chatCompletions": "supported"});
    assert_eq!(put["capabilities"], both);
    bench.hub.hears(HEARTBEAT, 3).await;
    assert_eq!(bench.hub.has(ROOM, "p1"), Some(true));
    let joined = loop {
        if let Event::Joined { room, participant_id, tunnel, .. } = bench.worker.event().await {
            break (room, participant_id, tunnel);
        }
    };
    assert_eq!(joined, (ROOM.to_owned(), "p1".to_owned(), true));
}

#[tokio::test]
async fn a_stream_is_passed_on_as_it_comes() {
    let mut bench = Bench::new().await;
    bench.ask("R1", true).await;
    let (mut connection, request) = bench.raw.request().await;
    assert_eq!(request.line, "POST /v1/chat/completions");
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body, json!({"model": "real", "stream": true, "messages": []}));
    connection.write(STREAM).await;
    let start = bench.tunnel.response("start", "R1").await;
    assert_eq!(
        (&start["status"], &start["headers"]["content-type"]),
        (&json!(200), &json!("text/event-stream"))
    );
    for text in ["data: 1\n\n", "data: gr\u{fc}n\n\n"] {
        chunk(&mut connection, text).await;
        let said = bench.tunnel.response("chunk", "R1").await;
        assert!(said["chunk"].is_string(), "before the next one is sent");
    }
    connection.write("0\r\n\r\n").await;
    bench.tunnel.response("end", "R1").await;
}

#[tokio::test]
async fn a_whole_answer_comes_whole_whatever_its_status() {
    let mut bench = Bench::new().await;
    for (id, status, code) in [("R1", "200 OK", 200), ("R2", "429 Too Many Requests", 429)] {
        bench.ask(id, false).await;
        let (mut connection, _) = bench.raw.request().await;
        connection.json(status, "", r#"{"a":"\u00fc"}"#).await;
        let (status, body) = bench.tunnel.answer(id).await;
        assert_eq!((status, body.as_str()), (code, r#"{"a":"\u00fc"}"#));
    }
}

#[tokio::test]
async fn a_long_answer_comes_in_pieces_and_whole() {
    let mut bench = Bench::new().await;
    bench.ask("R1", false).await;
    let (mut connection, _) = bench.raw.request().await;
    let long = format!("\"{}\"", "x".repeat(300_000));
    connection.json("200 OK", "", &long).await;
    assert_eq!(bench.tunnel.answer("R1").await, (200, long));
}

#[tokio::test]
async fn a_backends_failure_is_reported_before_and_within_an_answer() {
    let mut bench = Bench::new().await;
    bench.ask("R1", true).await;
    drop(bench.raw.request().await);
    let error = bench.tunnel.response("error", "R1").await;
    assert_eq!(error["stage"], "proxy");
    bench.ask("R2", true).await;
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    chunk(&mut connection, "data: 1\n\n").await;
    bench.tunnel.response("start", "R2").await;
    bench.tunnel.response("chunk", "R2").await;
    drop(connection);
    bench.tunnel.response("chunk", "R2").await;
    let error = bench.tunnel.response("error", "R2").await;
    assert!(!error["message"].as_str().unwrap().is_empty(), "{error}");
}

/// A stock hub ends a failed stream in the same way as a good one: only an event tells its client.
#[tokio::test]
async fn a_stream_that_breaks_off_at_a_stock_hub_ends_with_its_apis_error_event() {
    let cases = [
        ("/v1/chat/completions", "\n\ndata: {\"error\":{\"message\":\"the model server"),
        ("/v1/responses", "\n\nevent: error\ndata: {\"type\":\"error\",\"code\":\"backend_broke\""),
    ];
    for (path, event) in cases {
        let mut bench = Bench::new().await;
        bench.ask_at(path, "R1", true).await;
        let (mut connection, _) = bench.raw.request().await;
        connection.write(STREAM).await;
        chunk(&mut connection, "data: {\"half").await;
        bench.tunnel.response("start", "R1").await;
        bench.tunnel.response("chunk", "R1").await;
        drop(connection);
        let last = bench.tunnel.bytes("R1").await;
        assert!(last.starts_with(event) && last.ends_with("\n\n"), "{last:?}");
        bench.tunnel.response("error", "R1").await;
    }
}

#[tokio::test]
async fn a_whole_answer_that_breaks_off_has_no_event_in_it() {
    let mut bench = Bench::new().await;
    bench.ask("R1", false).await;
    let (mut connection, _) = bench.raw.request().await;
    connection
        .write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{")
        .await;
    bench.tunnel.response("start", "R1").await;
    bench.tunnel.response("chunk", "R1").await;
    drop(connection);
    bench.tunnel.response("error", "R1").await;
}

#[tokio::test]
async fn a_server_that_cancels_stops_the_backend_and_reports_failures_itself() {
    let mut bench = Bench::at(FakeHub::start(ROOM).await.as_warren()).await;
    let opened = bench.hub.heard_at("GET /v1/rooms/ABC123/participants/p1/tunnel?token=").remove(0);
    assert!(opened.line.ends_with("&cancels=true"), "{opened:?}");
    for id in ["R1", "R2"] {
        bench.ask(id, true).await;
    }
    let (mut stopped, _) = bench.raw.request().await;
    let (mut broken, _) = bench.raw.request().await;
    for connection in [&mut stopped, &mut broken] {
        connection.write(STREAM).await;
    }
    for _ in 0..2 {
        assert_eq!(bench.tunnel.said().await["type"], "tunnel.response.start");
    }
    bench.tunnel.say(&json!({"type": "tunnel.cancel", "requestId": "R1"})).await;
    stopped.closed().await;
    bench.tunnel.response("error", "R1").await;
    chunk(&mut broken, "data: 1\n\n").await;
    bench.tunnel.response("chunk", "R2").await;
    drop(broken);
    bench.tunnel.response("error", "R2").await;
}

#[tokio::test]
async fn other_methods_reach_the_backend() {
    let mut bench = Bench::new().await;
    let request = json!({
        "type": "tunnel.request", "requestId": "R1", "operation": "responses.get",
        "method": "GET", "path": "/v1/responses/a?x=1", "headers": {}, "stream": false,
    });
    bench.tunnel.say(&request).await;
    let (mut connection, request) = bench.raw.request().await;
    assert_eq!((request.line.as_str(), request.body.len()), ("GET /v1/responses/a?x=1", 0));
    connection.json("200 OK", "", "{}").await;
    assert_eq!(bench.tunnel.answer("R1").await.0, 200);
}

#[tokio::test]
async fn a_tunnel_that_is_gone_stops_the_backend_and_is_opened_again() {
    let bench = Bench::new().await;
    bench.ask("R1", true).await;
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    bench.tunnel.vanish().await;
    connection.closed().await;
    let next = bench.hub.tunnel().await;
    assert_eq!(next.participant, "p1");
    bench.hub.hears(PUT, 2).await;
}

#[tokio::test]
async fn a_hub_that_closes_gets_its_participant_back() {
    for (code, reason) in [(1001, "hub closing"), (4001, "ping lapse")] {
        let bench = Bench::new().await;
        bench.tunnel.close(code, reason).await;
        bench.hub.tunnel().await;
    }
}

#[tokio::test]
async fn a_heartbeat_or_two_may_fail_and_three_lead_to_a_new_tunnel() {
    let bench = Bench::new().await;
    bench.hub.fail_heartbeats(2);
    bench.hub.hears(HEARTBEAT, 6).await;
    assert_eq!(bench.hub.heard_at(PUT).len(), 1);
    bench.hub.fail_heartbeats(3);
    bench.hub.tunnel().await;
    assert_eq!(bench.hub.heard_at(PUT).len(), 2);
}

#[tokio::test]
async fn a_leaving_participant_finishes_its_jobs_and_is_deleted() {
    let mut bench = Bench::new().await;
    bench.ask("R1", false).await;
    let (mut connection, _) = bench.raw.request().await;
    bench.worker.shutdown.cancel();
    bench.hub.hears(HEARTBEAT, 1).await;
    assert!(bench.hub.heard_at(DELETE).is_empty());
    connection.json("200 OK", "", "{}").await;
    assert_eq!(bench.tunnel.answer("R1").await.0, 200);
    assert_eq!(bench.tunnel.closed().await, 1000);
    let ended = bench.worker.ended().await;
    assert_eq!((ended.cut_off, ended.gave_up), (0, None));
    assert_eq!(bench.hub.heard_at(DELETE).len(), 1);
    assert_eq!(bench.hub.has(ROOM, "p1"), None);
}

#[tokio::test]
async fn a_staying_participant_is_not_deleted() {
    let bench = Bench::as_who(JoinRoom { stay: true, ..ann() }).await;
    bench.worker.shutdown.cancel();
    bench.worker.ended().await;
    assert!(bench.hub.heard_at(DELETE).is_empty());
    let gone = async || bench.hub.has(ROOM, "p1") == Some(false);
    eventually("the tunnel's end", DEADLINE, gone).await;
}

#[tokio::test]
async fn a_room_that_is_gone_ends_it() {
    let bench = Bench::new().await;
    bench.hub.forget_room(ROOM);
    assert_eq!(bench.gave_up().await, (GiveUpReason::NoRoom, 0));
}

#[tokio::test]
async fn a_refused_join_ends_it_with_words_and_a_failed_one_is_tried_again() {
    let (hub, raw) = (FakeHub::start(ROOM).await, RawServer::start().await);
    hub.refuse_joins(1, 500, "INTERNAL_ERROR");
    let _worker = RunningWorker::start(as_participant(&hub, ann(), lends(&raw)), NetDialer);
    hub.tunnel().await;
    hub.refuse_joins(1, 409, "PARTICIPANT_CONFLICT");
    let taken = RunningWorker::start(as_participant(&hub, ann(), lends(&raw)), NetDialer);
    match taken.ended().await.gave_up {
        Some(GiveUpReason::Refused(words)) => {
            assert!(words.contains("Refused by the test"), "{words}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_model_that_is_no_longer_there_is_replaced() {
    let (hub, mock) = (FakeHub::start(ROOM).await, MockBackend::start(&["old"]).await);
    let backend = BackendConfig::new(mock.url());
    let poll_interval = Duration::from_millis(20);
    let config = WorkerConfig { poll_interval, ..as_participant(&hub, ann(), backend) };
    let _worker = RunningWorker::start(config, NetDialer);
    hub.tunnel().await;
    mock.set_models(&["new"]);
    hub.tunnel().await;
    let puts = hub.heard_at(PUT);
    let models: Vec<_> = puts.iter().map(|put| put.body["model"].clone()).collect();
    assert_eq!(models, ["old", "new"]);
}

#[tokio::test]
async fn a_room_of_the_hub_is_served_from_end_to_end() {
    let (hub, mock) = (FakeHub::start(ROOM).await, MockBackend::start(&["m"]).await);
    let backend = BackendConfig::new(mock.url());
    let _worker = RunningWorker::start(as_participant(&hub, ann(), backend), NetDialer);
    hub.tunnel().await;
    hub.hears(HEARTBEAT, 2).await;
    mock.then(Reply::json(200, &json!({"choices": []})));
    let client = testkit::Client::new(hub.address());
    let body = json!({"model": "*", "messages": []});
    let answer = client.post_json("/rooms/abc123/v1/chat/completions", &body).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"choices":[]}"#));
}
