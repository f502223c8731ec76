//! The bounds that hold a job up: its credit, which stops its own backend's stream and nothing else, and
//! the slots of the backend.

use backend::BackendConfig;
use protocol::relay::{
    INITIAL_CREDIT, Ping, ServerFrame, ServerMessage, WorkerFrame, WorkerMessage,
};
use worker::{Lend, ServerTarget};

use crate::support::{Bench, Pipes, RawServer, RunningWorker, ServerEnd, backend, config};

/// Takes chunks of job 1 until there are `bytes` bytes.
async fn take(server: &mut ServerEnd, bytes: usize) {
    let mut taken = 0;
    while taken < bytes {
        let chunk = server.bytes(1).await;
        assert!(chunk.len() <= 64 * 1024);
        taken += chunk.len();
    }
    assert_eq!(taken, bytes);
}

#[tokio::test]
async fn a_job_without_credit_stops_and_the_others_go_on() {
    const LENGTH: usize = 64 << 20;
    let mut bench = Bench::new(true).await;
    bench.server.request(1, true, "{}");
    let (mut slow, _) = bench.raw.request().await;
    slow.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n")).await;
    let flood = tokio::spawn(async move {
        slow.flood(LENGTH).await;
        slow
    });
    assert!(matches!(bench.server.frame().await, WorkerFrame::Head { job: 1, .. }));
    take(&mut bench.server, INITIAL_CREDIT as usize).await;

    bench.server.request(2, false, "{}");
    let (mut other, _) = bench.raw.request().await;
    other.json("200 OK", "", "{}").await;
    assert!(matches!(bench.server.frame().await, WorkerFrame::Head { job: 2, .. }));
    assert_eq!(bench.server.bytes(2).await, "{}");
    assert!(matches!(bench.server.frame().await, WorkerFrame::End { job: 2, .. }));

    bench.server.send(&ServerFrame::Credit { job: 1, bytes: 100_000 });
    take(&mut bench.server, 100_000).await;
    assert!(bench.server.is_silent() && !flood.is_finished());
    bench.server.cancel(1);
    assert!(matches!(bench.server.frame().await, WorkerFrame::Fail { job: 1, .. }));
    flood.await.unwrap().closed().await;
}

async fn load(server: &mut ServerEnd) -> u32 {
    server.say(&ServerMessage::Ping(Ping::default()));
    match server.message().await {
        WorkerMessage::Pong(pong) => pong.current_load,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_slots_and_the_load_of_a_backend_count_over_all_servers() {
    let raw = RawServer::start().await;
    let lend = Lend::Http(BackendConfig { max_concurrent: 1, ..backend(&raw) });
    let mut config = config(vec![lend]);
    config.servers.push(ServerTarget::new("http://other", None).unwrap());
    let (pipes, mut servers) = Pipes::new(true);
    let _worker = RunningWorker::start(config, pipes);
    let (mut one, mut two) = (servers.recv().await.unwrap(), servers.recv().await.unwrap());
    one.register().await;
    two.register().await;
    one.request(1, false, "{}");
    let (mut first, _) = raw.request().await;
    two.request(1, false, "{}");
    assert_eq!(load(&mut two).await, 2);
    assert_eq!(load(&mut one).await, 2);
    first.json("200 OK", "", "one").await;
    assert!(matches!(one.frame().await, WorkerFrame::Head { .. }));
    let second = first.request().await;
    assert_eq!(second.line, "POST /v1/chat/completions");
    first.json("200 OK", "", "two").await;
    assert!(matches!(two.frame().await, WorkerFrame::Head { .. }));
    assert_eq!(two.bytes(1).await, "two");
}
