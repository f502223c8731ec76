//! A cancel closes the backend's connection at once, whatever state the job is in.

use protocol::relay::{FailureCode, WorkerFrame};

use crate::support::{Bench, STREAM, ServerEnd};

async fn reported(server: &mut ServerEnd) {
    if server.binary {
        let WorkerFrame::Fail { job: 1, failure } = server.frame().await else { panic!() };
        assert_eq!(failure.code, FailureCode::Canceled);
    } else {
        let complete = server.complete().await;
        assert_eq!((complete.request_id.as_str(), complete.status_code), ("r-1", 499));
    }
}

async fn before_the_head(binary: bool) {
    let mut bench = Bench::new(binary).await;
    bench.server.request(1, false, "{}");
    let (mut connection, _) = bench.raw.request().await;
    bench.server.cancel(1);
    connection.closed().await;
    reported(&mut bench.server).await;
}

async fn in_the_middle(binary: bool) {
    let mut bench = Bench::new(binary).await;
    bench.server.request(1, true, "{}");
    let (mut connection, _) = bench.raw.request().await;
    connection.write(STREAM).await;
    connection.write("3\r\nabc\r\n").await;
    if binary {
        assert!(matches!(bench.server.frame().await, WorkerFrame::Head { .. }));
        assert_eq!(bench.server.bytes(1).await, "abc");
    } else {
        assert_eq!(bench.server.chunk(1).await, "abc");
    }
    bench.server.cancel(1);
    connection.closed().await;
    reported(&mut bench.server).await;
    assert!(bench.server.is_silent());
}

#[tokio::test]
async fn before_the_head_as_text() {
    before_the_head(false).await;
}

#[tokio::test]
async fn before_the_head_as_frames() {
    before_the_head(true).await;
}

#[tokio::test]
async fn in_the_middle_as_text() {
    in_the_middle(false).await;
}

#[tokio::test]
async fn in_the_middle_as_frames() {
    in_the_middle(true).await;
}

/// The slot of a canceled job is free for the one that waits for it.
#[tokio::test]
async fn a_cancel_makes_room() {
    let mut bench = Bench::with(true, |backend| backend.max_concurrent = 1).await;
    bench.server.request(1, false, "{}");
    let (mut first, _) = bench.raw.request().await;
    bench.server.request(2, false, "{}");
    bench.server.cancel(1);
    first.closed().await;
    let (mut second, _) = bench.raw.request().await;
    second.json("200 OK", "", "{}").await;
    reported(&mut bench.server).await;
    assert!(matches!(bench.server.frame().await, WorkerFrame::Head { job: 2, .. }));
}

#[tokio::test]
async fn a_link_that_is_lost_cancels_all_its_jobs() {
    let bench = Bench::new(true).await;
    bench.server.request(1, false, "{}");
    let (mut connection, _) = bench.raw.request().await;
    drop(bench.server);
    connection.closed().await;
}
