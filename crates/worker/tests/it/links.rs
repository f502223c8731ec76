//! Links that fail and come back, on a clock that the test owns.

use std::time::Duration;

use backend::{BackendConfig, DemoConfig};
use http::{HeaderMap, StatusCode};
use protocol::relay::{GracefulShutdown, Pong, RegisterAck, ServerMessage, Version, WorkerMessage};
use tokio::{sync::mpsc, time::Instant};
use wire::{DialError, DialedLink, Link, Outbox, Role};
use worker::{DialFuture, Dialer, Event, Lend, Protocol, ServerTarget, Worker, WorkerConfig};

use crate::support::{Pipes, RunningWorker, config, demo};

fn unreachable() -> DialError {
    let source = std::io::ErrorKind::ConnectionRefused.into();
    DialError::Connect { address: "server:80".to_owned(), source }
}

fn unauthorized() -> DialError {
    DialError::Refused { status: StatusCode::UNAUTHORIZED, body: "bad secret".to_owned() }
}

async fn next_trouble(worker: &mut RunningWorker) -> (&'static str, String, Duration) {
    loop {
        match worker.event().await {
            Event::Refused { reason, retry_in, .. } => return ("refused", reason, retry_in),
            Event::Disconnected { reason, retry_in, .. } => return ("lost", reason, retry_in),
            _ => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_there_is_tried_for_ever() {
    let (pipes, mut servers) = Pipes::new(true);
    pipes.failures.lock().unwrap().extend((0..100).map(|_| unreachable()));
    let start = Instant::now();
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let (kind, reason, wait) = next_trouble(&mut worker).await;
    assert_eq!(kind, "lost");
    assert!(reason.contains("could not connect to server:80: connection refused"), "{reason}");
    assert!(wait <= Duration::from_secs(1));
    let mut server = servers.recv().await.unwrap();
    server.register().await;
    let mut reports = Vec::new();
    loop {
        match worker.event().await {
            Event::Disconnected { tries, .. } => reports.push(tries),
            Event::Connected { .. } => break,
            _ => {}
        }
    }
    assert_eq!(reports, [3, 6, 12, 24, 48, 96], "told at growing intervals");
    let minutes = start.elapsed().as_secs() / 60;
    assert!((20..=50).contains(&minutes), "{minutes}");
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_tries_are_slow_and_reports_are_at_growing_intervals() {
    let (pipes, mut servers) = Pipes::new(true);
    pipes.failures.lock().unwrap().extend((0..4).map(|_| unauthorized()));
    let start = Instant::now();
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let mut server = servers.recv().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 120);
    let (kind, reason, _) = next_trouble(&mut worker).await;
    assert_eq!(kind, "refused");
    assert!(reason.contains("the server refused the secret"), "{reason}");
    assert_eq!(next_trouble(&mut worker).await.0, "refused", "the third is told again");
    server.register().await;
    assert!(matches!(worker.event().await, Event::Connected { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_stock_servers_refusal_comes_as_a_close() {
    let (pipes, mut servers) = Pipes::new(false);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    servers.recv().await.unwrap().close(1008, "worker authentication failed");
    let (kind, reason, wait) = next_trouble(&mut worker).await;
    assert_eq!((kind, reason.as_str()), ("refused", "worker authentication failed"));
    assert_eq!(wait.as_secs(), 30);
}

/// The refusal says nothing about this worker's secret.
#[tokio::test(start_paused = true)]
async fn a_stock_server_that_lets_nobody_in_for_a_moment_is_tried_again_soon() {
    let (pipes, mut servers) = Pipes::new(false);
    let start = Instant::now();
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    for _ in 0..2 {
        let server = servers.recv().await.unwrap();
        server.close(1008, "worker authentication temporarily rate limited");
    }
    let mut server = servers.recv().await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 2);
    server.register().await;
    let (_, reason, wait) = next_trouble(&mut worker).await;
    assert!(reason.contains("temporarily rate limited"), "{reason}");
    assert_eq!(wait.as_secs(), 1);
    assert!(matches!(worker.event().await, Event::Connected { .. }), "told once");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_away_gets_its_worker_back() {
    let (pipes, mut servers) = Pipes::new(true);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let mut server = servers.recv().await.unwrap();
    server.register().await;
    drop(server);
    let (kind, _, wait) = next_trouble(&mut worker).await;
    assert_eq!(kind, "lost");
    assert!(wait <= Duration::from_secs(1));
    servers.recv().await.unwrap().register().await;
}

#[tokio::test(start_paused = true)]
async fn the_other_server_hears_at_once_that_there_is_room_again() {
    let (pipes, mut servers) = Pipes::new(true);
    let one = Lend::Demo(DemoConfig { tokens_per_second: 0, max_concurrent: 1 });
    let target = ServerTarget::new("http://other", None).unwrap();
    let mut config = config(vec![one]);
    config.servers.push(target);
    let _worker = RunningWorker::start(config, pipes);
    let mut first = servers.recv().await.unwrap();
    let mut second = servers.recv().await.unwrap();
    first.register().await;
    second.register().await;
    first.request(1, false, r#"{"model":"demo","messages":[]}"#);
    let room = WorkerMessage::Pong(Pong { current_load: 0, timestamp_unix_ms: None });
    assert_eq!(second.message().await, room);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_falls_silent_is_left() {
    let (pipes, mut servers) = Pipes::new(false);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let mut server = servers.recv().await.unwrap();
    server.register().await;
    let start = Instant::now();
    let (_, reason, _) = next_trouble(&mut worker).await;
    assert!(reason.contains("was silent for 9"), "{reason}");
    assert!((90..=100).contains(&start.elapsed().as_secs()));
    // Meanwhile the load was reported to it, which makes a stock server hand out work.
    assert!(matches!(server.message().await, WorkerMessage::Pong(_)));
}

/// Gives the test the server's ends, which read and answer nothing unless the test waits for it.
struct Deaf(mpsc::Sender<(Link, Outbox)>);

impl Dialer for Deaf {
    fn dial<'a>(&'a self, _: &'a ServerTarget) -> DialFuture<'a> {
        Box::pin(async move {
            let (near, far) = tokio::io::duplex(1 << 16);
            self.0.send(Link::new(Box::pin(far), Role::Server)).await.unwrap();
            let (link, outbox) = Link::new(Box::pin(near), Role::Client);
            let (subprotocol, headers) =
                (Some(Version::NEWEST.name().to_owned()), HeaderMap::new());
            Ok(DialedLink { link, outbox, subprotocol, headers })
        })
    }
}

/// Its network has changed, say: nothing comes back any more, and nobody says so.
#[tokio::test(start_paused = true)]
async fn a_warren_that_answers_no_ping_is_dialled_again_within_half_a_minute() {
    let (servers, mut ends) = mpsc::channel(2);
    let mut worker = RunningWorker::start(config(vec![demo()]), Deaf(servers));
    let (mut link, outbox) = ends.recv().await.unwrap();
    let registered = link.next().await.unwrap();
    let ack = RegisterAck { worker_id: "w-1".to_owned(), ..RegisterAck::default() };
    outbox.push(ServerMessage::RegisterAck(ack).encode()).unwrap();
    let update = link.next().await.unwrap();
    assert!(registered.is_some() && update.is_some());
    // For a minute it answers each ping.
    assert!(tokio::time::timeout(Duration::from_secs(60), link.next()).await.is_err());
    let start = Instant::now();
    let (kind, reason, wait) = next_trouble(&mut worker).await;
    assert!(kind == "lost" && reason.contains("was silent for 2"), "{reason}");
    assert!((20..=25).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    assert!(wait <= Duration::from_secs(1));
    ends.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_accepts_is_left() {
    let (pipes, mut servers) = Pipes::new(true);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let _server = servers.recv().await.unwrap();
    let (_, reason, _) = next_trouble(&mut worker).await;
    assert_eq!(reason, "the server did not answer the registration");
}

fn graceful(seconds: u64) -> ServerMessage {
    let reason = Some("maintenance".to_owned());
    ServerMessage::GracefulShutdown(GracefulShutdown { reason, drain_timeout_secs: Some(seconds) })
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drained_gets_its_worker_back_soon() {
    let (pipes, mut servers) = Pipes::new(false);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    let mut server = servers.recv().await.unwrap();
    server.register().await;
    server.say(&graceful(30));
    server.request(1, false, "{}");
    let declined = server.complete().await;
    assert_eq!(declined.status_code, 503);
    server.close(1000, "graceful shutdown complete");
    let (_, reason, wait) = next_trouble(&mut worker).await;
    assert!(reason.contains("graceful shutdown complete"), "{reason}");
    assert!((2000..2500).contains(&wait.as_millis()), "{wait:?}");
    servers.recv().await.unwrap().register().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drains_and_never_closes_is_left() {
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(config(vec![demo()]), pipes);
    let mut server = servers.recv().await.unwrap();
    server.register().await;
    let start = Instant::now();
    server.say(&graceful(5));
    let next = servers.recv().await.unwrap();
    assert!((17..=18).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    drop(next);
}

fn cloud() -> Lend {
    let models = Some(vec!["m".parse().unwrap()]);
    Lend::Http(BackendConfig { cloud: true, models, ..BackendConfig::new("http://127.0.0.1:1") })
}

#[tokio::test(start_paused = true)]
async fn a_cloud_is_lent_to_a_warren_as_a_cloud_and_not_to_a_stock_server() {
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(config(vec![cloud()]), pipes);
    assert!(servers.recv().await.unwrap().register().await.cloud);
    let (pipes, _servers) = Pipes::new(false);
    let mut worker = RunningWorker::start(config(vec![cloud()]), pipes);
    let (kind, reason, _) = next_trouble(&mut worker).await;
    assert_eq!(kind, "refused");
    assert!(reason.contains("no Warren"), "{reason}");
}

#[tokio::test]
async fn a_cloud_is_lent_over_no_node_protocol() {
    let (pipes, _servers) = Pipes::new(true);
    let config = WorkerConfig { protocol: Protocol::Node, ..config(vec![cloud()]) };
    let refused = Worker::new(config, pipes).unwrap_err().to_string();
    assert!(refused.contains("127.0.0.1:1") && refused.contains("cost you money"), "{refused}");
}
