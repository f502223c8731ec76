//! Credit: a job whose server takes nothing stops its own backend's stream and nothing else.

use protocol::relay::{INITIAL_CREDIT, ServerFrame, WorkerFrame};

use crate::support::{Bench, ServerEnd};

/// Takes chunks of job 1 until there are so many bytes.
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
