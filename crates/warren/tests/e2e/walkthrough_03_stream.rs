//! Walkthrough 3: a stream, forwarded as it comes.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Daemon, FakeWorker, Form, Gate, Reply};

use crate::common::{CHAT, MESSAGES, ask, ask_unfiltered, both_forms, with_lender, with_worker};

both_forms!(chunks_pass_one_by_one_and_unchanged);

/// Chunks that no framing of ours would make: a comment, two events in one, half an event, CRLF.
const CHUNKS: [&str; 5] = [
    ": hello\n\n",
    "data: {\"choices\":[]}\n\ndata: 2\n\n",
    "data: {\"ha",
    "lf\":  1}\r\n\r\n",
    "data: [DONE]\n\n",
];

async fn chunks_pass_one_by_one_and_unchanged(form: Form) {
    let (daemon, mut worker) = with_worker(form, 1).await;
    let asked = daemon.client().post(CHAT, &ask_unfiltered()).open().await;
    let job = worker.expect_job().await;
    assert!(job.streaming);
    worker.chunk(&job, CHUNKS[0]).await;
    let mut answer = asked.answer().await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    // Each must be there before the next is sent.
    answer.expect(CHUNKS[0]).await;
    for chunk in &CHUNKS[1..] {
        worker.chunk(&job, chunk).await;
        answer.expect(chunk).await;
    }
    worker.finish(&job).await;
    assert_eq!(answer.next_chunk().await, None);
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_real_worker_forwards_each_read_of_its_backend() {
    let (daemon, backend, _worker) = with_lender(1).await;
    // The middle of an emoji is where the first read ends.
    let emoji = "data: 🦀\n\n".as_bytes();
    let chunks = [&emoji[..8], &emoji[8..], b"data: [DONE]\n\n"];
    for path in [CHAT, MESSAGES, "/v1/responses"] {
        let gate = Gate::closed();
        backend.then(Reply::stream(chunks, &gate));
        let asked = daemon.client().post(path, &ask_unfiltered()).open().await;
        gate.open(1);
        let mut answer = asked.answer().await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        assert_eq!(answer.header("x-accel-buffering"), Some("no"));
        assert_eq!(answer.next_chunk().await.unwrap(), chunks[0]);
        for chunk in &chunks[1..] {
            gate.open(1);
            assert_eq!(answer.next_chunk().await.unwrap(), *chunk);
        }
        gate.open(1);
        assert_eq!(answer.next_chunk().await, None);
    }
    daemon.is_idle().await;
}

#[tokio::test]
async fn a_real_worker_keeps_status_and_headers_of_a_stream() {
    let (daemon, backend, _worker) = with_lender(1).await;
    let headers = [("content-type", "text/event-stream; charset=utf-8"), ("x-back", "2")];
    backend.then(Reply::stream_with(203, &headers, ["data: 1\n\n"], &Gate::opened()));
    let answer = daemon.client().post_json(CHAT, &ask(true)).await;
    assert_eq!((answer.status, answer.text().as_str()), (203, "data: 1\n\n"));
    assert_eq!(answer.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(answer.header("x-back"), Some("2"));
    let error = json!({"error": {"message": "slow down"}});
    let headers = [("content-type", "application/json"), ("retry-after", "7")];
    backend.then(Reply::full(429, &headers, error.to_string()));
    let answer = daemon.client().post_json(CHAT, &ask(true)).await;
    assert_eq!((answer.status, answer.json()), (429, error));
    assert_eq!(answer.header("retry-after"), Some("7"));
}

/// A stock worker writes nothing more before what it wrote is acknowledged. That may take the kernel
/// 40 ms on a connection on which question and answer have followed each other.
#[tokio::test]
async fn the_chunks_of_a_stock_worker_are_acknowledged_at_once() {
    const STREAMS: usize = 11;
    let (daemon, mut worker) = with_worker(Form::Stock, 1).await;
    let mut slowest = Vec::new();
    for _ in 0..STREAMS {
        for _ in 0..4 {
            let asked = daemon.client().post(CHAT, &ask(false)).open().await;
            let job = worker.expect_job().await;
            worker.complete(&job, 200, &json!({})).await;
            asked.answer().await.finish().await;
        }
        slowest.push(slowest_chunk(&daemon, &mut worker).await);
    }
    slowest.sort_unstable();
    assert!(slowest[STREAMS / 2] < Duration::from_millis(25), "{slowest:?}");
}

/// The longest time that a chunk of a stream takes to reach its client.
async fn slowest_chunk(daemon: &Daemon, worker: &mut FakeWorker) -> Duration {
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    worker.chunk(&job, "data: begin\n\n").await;
    let mut answer = asked.answer().await;
    answer.expect("data: begin\n\n").await;
    let mut slowest = Duration::ZERO;
    for chunk in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        let sent = Instant::now();
        worker.chunk(&job, chunk).await;
        answer.expect(chunk).await;
        slowest = slowest.max(sent.elapsed());
    }
    worker.finish(&job).await;
    assert_eq!(answer.next_chunk().await, None);
    slowest
}
