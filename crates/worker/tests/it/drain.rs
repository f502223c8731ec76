//! A worker that drains before it ends.

use protocol::relay::WorkerFrame;
use wire::DialError;

use crate::support::{Bench, Pipes, RunningWorker, config, demo};

#[tokio::test]
async fn it_finishes_its_jobs_and_takes_no_new_ones() {
    let mut bench = Bench::new(true).await;
    bench.server.request(1, false, "{}");
    let (mut connection, _) = bench.raw.request().await;
    bench.worker.shutdown.cancel();
    let update = bench.server.models().await;
    assert_eq!((update.models.len(), update.current_load), (0, 1));
    bench.server.request(2, false, "{}");
    assert!(matches!(bench.server.frame().await, WorkerFrame::Fail { job: 2, .. }));
    connection.json("200 OK", "", "{}").await;
    assert!(matches!(bench.server.frame().await, WorkerFrame::Head { job: 1, .. }));
    assert_eq!(bench.server.bytes(1).await, "{}");
    assert!(matches!(bench.server.frame().await, WorkerFrame::End { job: 1, .. }));
    let goodbye = Some((1000, "worker shutting down".to_owned()));
    assert_eq!(bench.server.closed().await, goodbye);
    assert_eq!(bench.worker.ended().await.cut_off, 0);
}

#[tokio::test]
async fn a_slow_drain_is_cut_off() {
    let bench = Bench::new(true).await;
    bench.server.request(1, false, "{}");
    let (mut connection, _) = bench.raw.request().await;
    bench.worker.shutdown.cancel();
    connection.closed().await;
    assert_eq!(bench.worker.ended().await.cut_off, 1);
}

#[tokio::test(start_paused = true)]
async fn without_a_link_it_ends_at_once() {
    let (pipes, _servers) = Pipes::new(true);
    let refused = DialError::Handshake("no".to_owned());
    pipes.failures.lock().unwrap().push_back(refused);
    let mut worker = RunningWorker::start(config(vec![demo()]), pipes);
    worker.event().await;
    worker.event().await;
    worker.shutdown.cancel();
    assert_eq!(worker.ended().await.cut_off, 0);
}
