//! A worker that lends as model nodes, with a stock-shaped server over real sockets.

use std::time::Duration;

use backend::{BackendConfig, ModelEntry};
use serde_json::json;
use testkit::{DEADLINE, MockBackend, NodeLink, NodeMessage, NodeServer, RawServer};
use tokio::time::Instant;
use wire::Frame;
use worker::{Event, Lend, NetDialer, Protocol, ServerTarget, WorkerConfig};

use crate::support::{Connection, Pipes, RunningWorker, STREAM, config, demo, known};

const TOKEN: &str = "node-token";

fn as_nodes(server: &str, backend: BackendConfig) -> WorkerConfig {
    WorkerConfig {
        servers: vec![ServerTarget::new(server, Some(TOKEN.into())).unwrap()],
        protocol: Protocol::Node,
        poll_interval: Duration::from_millis(10),
        ..config(vec![Lend::Http(backend)])
    }
}

fn models(entries: &[&str]) -> Option<Vec<ModelEntry>> {
    Some(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

/// A worker with one slot for the model `m`, which its backend calls `real`.
struct Bench {
    worker: RunningWorker,
    server: NodeServer,
    node: NodeLink,
    raw: RawServer,
}

impl Bench {
    async fn new() -> Self {
        Self::with(1).await
    }

    async fn with(slots: u32) -> Self {
        Self::at(NodeServer::start(TOKEN).await, slots).await
    }

    async fn at(server: NodeServer, slots: u32) -> Self {
        let raw = RawServer::start().await;
        let backend =
            BackendConfig { models: models(&["m=real"]), max_concurrent: slots, ..known(&raw) };
        let worker = RunningWorker::start(as_nodes(&server.url(), backend), NetDialer);
        let node = server.node().await;
        Self { worker, server, node, raw }
    }

    /// Begins a task, and has the backend answer the first word.
    async fn half_way(&mut self, id: u32) -> Connection {
        self.node.task(id, "long").await;
        let mut connection = self.begin().await;
        delta(&mut connection, "half").await;
        assert_eq!(self.node.answer().await, piece(id, "half"));
        connection
    }

    /// Cuts the connection, and waits for the next one under its name.
    async fn reconnected(&mut self) {
        self.node.vanish().await;
        let next = self.server.node().await;
        assert_eq!(next.name, self.node.name);
        self.node = next;
    }

    /// Takes the request of a task, and begins its answer.
    async fn begin(&self) -> Connection {
        let (mut connection, _) = self.raw.request().await;
        connection.write(STREAM).await;
        connection
    }
}

/// An event with this text.
async fn delta(connection: &mut Connection, text: &str) {
    let event = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let event = format!("data: {event}\n\n");
    connection.write(format!("{:x}\r\n{event}\r\n", event.len())).await;
}

async fn done(connection: &mut Connection) {
    connection.write("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await;
}

fn piece(id: u32, text: &str) -> NodeMessage {
    NodeMessage::Piece(id, text.to_owned())
}

#[tokio::test]
async fn each_slot_of_each_model_is_a_connection_for_one_task() {
    let (server, raw) = (NodeServer::start(TOKEN).await, RawServer::start().await);
    let backend = BackendConfig { models: models(&["a", "b"]), max_concurrent: 2, ..known(&raw) };
    let _worker = RunningWorker::start(as_nodes(&server.url(), backend), NetDialer);
    let mut nodes = Vec::new();
    for _ in 0..4 {
        let NodeLink { path, model, name, max_concurrency, .. } = server.node().await;
        assert_eq!((path.as_str(), max_concurrency.as_str()), ("/ws", "1"));
        nodes.push(format!("{model} {name}"));
    }
    nodes.sort();
    assert_eq!(nodes, ["a w-1", "a w-2", "b w-1", "b w-2"]);
}

#[tokio::test]
async fn a_task_is_asked_of_the_backend_and_answered_as_it_comes() {
    let mut bench = Bench::new().await;
    bench.node.task(7, "hi").await;
    let (mut connection, request) = bench.raw.request().await;
    assert_eq!(request.line, "POST /v1/chat/completions");
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let expected = json!({
        "model": "real", "stream": true, "max_tokens": 50, "temperature": 0.0,
        "messages": [
            {"role": "system", "content": "You are a helper."},
            {"role": "user", "content": "hi"},
        ],
    });
    assert_eq!(body, expected);
    connection.write(STREAM).await;
    for text in ["gr\u{fc}n", " \u{1f40d}"] {
        delta(&mut connection, text).await;
        assert_eq!(bench.node.answer().await, piece(7, text), "before the next one is sent");
    }
    done(&mut connection).await;
    assert_eq!(bench.node.answer().await, NodeMessage::End(7));
}

#[tokio::test]
async fn messages_may_be_strings_and_the_answer_may_come_whole() {
    let mut bench = Bench::new().await;
    let strings = json!({"state": 0, "id": 1, "messages": ["a", "b", "c"], "max_new_tokens": 5});
    bench.node.say(&strings).await;
    let (mut connection, request) = bench.raw.request().await;
    let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap();
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|m| &m["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let answer = json!({"choices": [{"message": {"content": "whole"}, "finish_reason": "stop"}]});
    connection.json("200 OK", "", &answer.to_string()).await;
    assert_eq!(bench.node.text(1).await, "whole");
}

#[tokio::test]
async fn a_stop_closes_the_backends_connection_and_the_next_task_is_taken() {
    let mut bench = Bench::new().await;
    bench.node.task(1, "long").await;
    let mut connection = bench.begin().await;
    delta(&mut connection, "a").await;
    assert_eq!(bench.node.answer().await, piece(1, "a"));
    bench.node.stop(1).await;
    connection.closed().await;
    bench.node.task(2, "short").await;
    let mut connection = bench.begin().await;
    delta(&mut connection, "b").await;
    done(&mut connection).await;
    assert_eq!(bench.node.text(2).await, "b", "and nothing more of the first");
}

#[tokio::test]
async fn a_task_is_stopped_before_the_backend_has_begun_to_answer() {
    let bench = Bench::new().await;
    bench.node.task(1, "slow").await;
    let (mut connection, _) = bench.raw.request().await;
    bench.node.stop(1).await;
    connection.closed().await;
}

#[tokio::test]
async fn an_invalid_task_is_ignored() {
    let mut bench = Bench::new().await;
    bench.node.say(&json!({"state": 1, "id": 3, "messages": ["not pending"]})).await;
    bench.node.task(1, "hi").await;
    let mut connection = bench.begin().await;
    bench.node.task(1, "the same again").await;
    bench.node.task(2, "one too many").await;
    bench.node.stop(9).await;
    for text in ["", "no json", "[]", r#"{"id":4}"#, r#"{"id":5,"messages":7}"#] {
        bench.node.raw(text.to_owned().into()).await;
    }
    bench.node.raw(vec![1, 2, 3].into()).await;
    delta(&mut connection, "fine").await;
    assert_eq!(bench.node.answer().await, piece(1, "fine"));
    // This stop is obeyed after all that was sent before it.
    bench.node.stop(1).await;
    connection.closed().await;
    bench.node.task(6, "next").await;
    let (mut connection, request) = bench.raw.request().await;
    assert!(String::from_utf8_lossy(&request.body).contains("next"), "{request:?}");
    connection.write(STREAM).await;
    done(&mut connection).await;
    assert_eq!(bench.node.text(6).await, "");
}

#[tokio::test]
async fn a_task_that_fails_says_so_and_ends_on_the_same_connection() {
    let mut bench = Bench::new().await;
    bench.node.task(1, "fails").await;
    let (mut connection, _) = bench.raw.request().await;
    connection.json("500 Internal Server Error", "", r#"{"error":"out of memory"}"#).await;
    let text = "[error: the backend answered 500: out of memory]";
    assert_eq!(bench.node.answer().await, piece(1, text));
    assert_eq!(bench.node.answer().await, NodeMessage::End(1));
    bench.node.task(2, "works").await;
    connection.request().await;
    connection.write(STREAM).await;
    delta(&mut connection, "here").await;
    done(&mut connection).await;
    assert_eq!(bench.node.text(2).await, "here");
}

#[tokio::test]
async fn an_answer_that_breaks_off_ends_with_an_error() {
    let mut bench = Bench::new().await;
    let connection = bench.half_way(1).await;
    drop(connection);
    let NodeMessage::Piece(1, text) = bench.node.answer().await else { panic!("no word of it") };
    assert!(text.starts_with("\n\n[error: ") && text.ends_with(']'), "{text}");
    assert_eq!(bench.node.answer().await, NodeMessage::End(1));
}

#[tokio::test]
async fn to_a_warren_a_task_that_fails_ends_its_connection_and_harms_no_other() {
    let mut bench = Bench::at(NodeServer::start_as_warren(TOKEN).await, 2).await;
    let mut other = bench.server.node().await;
    other.task(1, "goes on").await;
    let mut living = bench.begin().await;
    bench.node.task(1, "fails").await;
    let (mut failing, _) = bench.raw.request().await;
    failing.json("500 Internal Server Error", "", r#"{"error":"out of memory"}"#).await;
    let ended = NodeMessage::Closed(Some((1011, "the task failed".to_owned())));
    assert_eq!(bench.node.answer().await, ended);
    delta(&mut living, "here").await;
    done(&mut living).await;
    assert_eq!(other.text(1).await, "here");
    let next = bench.server.node().await;
    assert_eq!(next.name, bench.node.name);
    loop {
        if let Event::Disconnected { reason, .. } = bench.worker.event().await {
            assert_eq!(reason, "a task failed: the backend answered 500: out of memory");
            break;
        }
    }
}

#[tokio::test]
async fn a_warren_gets_the_pieces_before_a_failure() {
    let mut bench = Bench::at(NodeServer::start_as_warren(TOKEN).await, 1).await;
    let connection = bench.half_way(1).await;
    drop(connection);
    assert!(matches!(bench.node.answer().await, NodeMessage::Closed(Some((1011, _)))));
}

#[tokio::test]
async fn a_warren_that_goes_aborts_the_request_and_nothing_is_sent_later() {
    let mut bench = Bench::at(NodeServer::start_as_warren(TOKEN).await, 1).await;
    let mut connection = bench.half_way(1).await;
    bench.node.vanish().await;
    connection.closed().await;
    bench.node = bench.server.node().await;
    bench.node.task(2, "new").await;
    let mut connection = bench.begin().await;
    done(&mut connection).await;
    assert_eq!(bench.node.answer().await, NodeMessage::End(2));
}

#[tokio::test]
async fn an_answer_that_ends_while_there_is_no_connection_is_sent_over_the_next() {
    let mut bench = Bench::new().await;
    let mut connection = bench.half_way(1).await;
    let address = bench.server.address();
    bench.node.vanish().await;
    bench.server.stop().await;
    delta(&mut connection, ", and the rest").await;
    done(&mut connection).await;
    bench.server = NodeServer::start_at(address, TOKEN).await;
    bench.node = bench.server.node().await;
    assert_eq!(bench.node.text(1).await, ", and the rest");
}

#[tokio::test]
async fn a_task_goes_on_over_every_connection_that_its_node_makes() {
    let mut bench = Bench::new().await;
    let mut connection = bench.half_way(1).await;
    for word in ["more", "and more"] {
        bench.reconnected().await;
        delta(&mut connection, word).await;
        assert_eq!(bench.node.answer().await, piece(1, word));
    }
    done(&mut connection).await;
    assert_eq!(bench.node.answer().await, NodeMessage::End(1));
    bench.node.task(2, "next").await;
    connection.request().await;
    connection.write(STREAM).await;
    done(&mut connection).await;
    assert_eq!(bench.node.text(2).await, "");
}

#[tokio::test]
async fn a_task_that_fails_while_there_is_no_connection_is_ended_over_the_next() {
    let mut bench = Bench::new().await;
    let connection = bench.half_way(1).await;
    bench.node.vanish().await;
    drop(connection);
    bench.node = bench.server.node().await;
    let text = bench.node.text(1).await;
    assert!(text.starts_with("\n\n[error: "), "{text}");
}

#[tokio::test]
async fn a_server_that_no_longer_wants_a_task_stops_it_over_the_next_connection() {
    let mut bench = Bench::new().await;
    let mut connection = bench.half_way(1).await;
    bench.reconnected().await;
    bench.node.stop(1).await;
    connection.closed().await;
}

#[tokio::test]
async fn a_server_that_has_given_a_task_up_gets_its_next_one_done() {
    let mut bench = Bench::new().await;
    let mut given_up = bench.half_way(1).await;
    bench.reconnected().await;
    bench.node.task(2, "new").await;
    given_up.closed().await;
    let mut connection = bench.begin().await;
    delta(&mut connection, "fresh").await;
    done(&mut connection).await;
    assert_eq!(bench.node.text(2).await, "fresh");
}

#[tokio::test]
async fn an_ending_node_without_a_connection_gives_its_task_up() {
    let mut bench = Bench::new().await;
    let mut connection = bench.half_way(1).await;
    bench.node.vanish().await;
    loop {
        if let Event::Disconnected { .. } = bench.worker.event().await {
            break;
        }
    }
    bench.worker.shutdown.cancel();
    connection.closed().await;
    assert_eq!(bench.worker.ended().await.cut_off, 1);
}

#[tokio::test]
async fn a_wrong_token_is_reported_and_shown_nowhere() {
    let (server, raw) = (NodeServer::start("another").await, RawServer::start().await);
    let backend = BackendConfig { models: models(&["m"]), max_concurrent: 1, ..known(&raw) };
    let mut worker = RunningWorker::start(as_nodes(&server.url(), backend), NetDialer);
    loop {
        let event = worker.event().await;
        assert!(!format!("{event:?}").contains(TOKEN), "{event:?}");
        if let Event::Refused { reason, retry_in, .. } = event {
            assert_eq!(reason, "the server refused the token: Invalid token");
            assert!(retry_in >= Duration::from_secs(10), "{retry_in:?}");
            break;
        }
    }
    assert!(server.is_deserted().await);
}

#[tokio::test]
async fn a_node_whose_place_is_taken_does_not_fight_for_it() {
    let bench = Bench::new().await;
    let backend = BackendConfig { models: models(&["m"]), max_concurrent: 1, ..known(&bench.raw) };
    let _second = RunningWorker::start(as_nodes(&bench.server.url(), backend), NetDialer);
    let _taker = bench.server.node().await;
    let mut first = bench.worker;
    loop {
        if let Event::Refused { reason, .. } = first.event().await {
            assert!(reason.contains("same model and name"), "{reason}");
            break;
        }
    }
}

#[tokio::test]
async fn jobs_beyond_the_drain_are_cut_off_and_counted() {
    let (server, raw) = (NodeServer::start(TOKEN).await, RawServer::start().await);
    let backend = BackendConfig { models: models(&["m"]), max_concurrent: 1, ..known(&raw) };
    let config = WorkerConfig {
        drain_timeout: Duration::from_millis(50),
        ..as_nodes(&server.url(), backend)
    };
    let worker = RunningWorker::start(config, NetDialer);
    let mut node = server.node().await;
    node.task(1, "endless").await;
    let (mut connection, _) = raw.request().await;
    worker.shutdown.cancel();
    connection.closed().await;
    assert_eq!(node.text(1).await, "[error: this worker has ended]");
    assert_eq!(node.answer().await, NodeMessage::Closed(Some((1000, "goodbye".to_owned()))));
    assert_eq!(worker.ended().await.cut_off, 1);
}

#[tokio::test]
async fn a_model_that_comes_gets_connections_and_one_that_goes_loses_them() {
    let (server, mock) = (NodeServer::start(TOKEN).await, MockBackend::start(&["a"]).await);
    let backend = BackendConfig { max_concurrent: 1, ..BackendConfig::new(mock.url()) };
    let _worker = RunningWorker::start(as_nodes(&server.url(), backend), NetDialer);
    let mut first = server.node().await;
    assert_eq!(first.model, "a");
    mock.set_models(&["b"]);
    assert_eq!(server.node().await.model, "b");
    assert_eq!(first.answer().await, NodeMessage::Closed(Some((1000, "goodbye".to_owned()))));
}

#[tokio::test]
async fn connections_are_bounded() {
    let (server, raw) = (NodeServer::start(TOKEN).await, RawServer::start().await);
    let backend = BackendConfig { models: models(&["a", "b"]), max_concurrent: 600, ..known(&raw) };
    let _worker = RunningWorker::start(as_nodes(&server.url(), backend), NetDialer);
    for _ in 0..600 {
        assert_eq!(server.node().await.model, "a");
    }
    assert!(server.is_deserted().await, "the second model has no room");
}

#[tokio::test(start_paused = true)]
async fn an_empty_text_every_ten_seconds_is_the_sign_of_life() {
    let (pipes, mut servers) = Pipes::new(false);
    let config = WorkerConfig { protocol: Protocol::Node, ..config(vec![demo()]) };
    let mut worker = RunningWorker::start(config, pipes);
    let mut server = servers.recv().await.unwrap();
    let start = Instant::now();
    for beat in 1..=3 {
        let frame = tokio::time::timeout(DEADLINE * 60, server.next()).await.unwrap();
        assert_eq!(frame, Frame::from(String::new()));
        assert_eq!(start.elapsed().as_secs(), beat * 10);
    }
    let connected = async {
        while !matches!(worker.event().await, Event::NodeConnected { model, .. } if model == "warren-demo")
        {
        }
    };
    tokio::time::timeout(DEADLINE, connected).await.unwrap();
}
