//! A client that does not read costs a bounded amount of memory, and costs other clients nothing.
//! Memory that a large request took goes back to the machine.

use std::time::Duration;

use serde_json::json;
use testkit::{DEADLINE, Form, Gate, MockBackend, Reply, eventually};

use crate::common::{CHAT, ask, join, lend, post, serve, with_lender, with_worker};

const MIB: usize = 1024 * 1024;

/// The most that the server may grow by while it holds a stream back: far less than what is sent.
const MAY_GROW: u64 = 24 * MIB as u64;

/// A stream of 64 MiB.
fn flood() -> Reply {
    let event = format!("data: {}\n\n", "x".repeat(64 * 1024));
    Reply::stream(vec![event; 1024], &Gate::opened())
}

#[tokio::test]
async fn a_slow_client_stops_its_own_backend_only() {
    let (daemon, backend, worker) = with_lender(2).await;
    // Grown to its usual size by a first request.
    assert_eq!(daemon.client().post_json(CHAT, &ask(true)).await.status, 200);
    let before = (daemon.resident_bytes(), worker.resident_bytes());
    backend.then(flood());
    let slow = daemon.client().post(CHAT, &ask(true)).open().await;
    let mut slow = slow.answer().await;
    let gate = Gate::closed();
    let chunks: Vec<_> = (0..200).map(|number| format!("data: {number}\n\n")).collect();
    backend.then(Reply::stream(&chunks, &gate));
    let quick = daemon.client().post(CHAT, &ask(true)).open().await;
    let mut quick = quick.answer().await;
    for chunk in &chunks {
        gate.open(1);
        quick.expect(chunk).await;
    }
    assert_eq!(backend.counts().in_flight(), 2, "the flood is held back at its backend");
    let after = (daemon.resident_bytes(), worker.resident_bytes());
    assert!(after.0 < before.0 + MAY_GROW, "server: {} to {}", before.0, after.0);
    assert!(after.1 < before.1 + MAY_GROW, "worker: {} to {}", before.1, after.1);
    // Once it reads, it gets all of it.
    let mut got = 0;
    while let Some(chunk) = slow.next_chunk().await {
        got += chunk.len();
    }
    assert_eq!(got, 1024 * (64 * 1024 + 8));
    let after = daemon.resident_bytes();
    assert!(after < before.0 + MAY_GROW, "server: {} to {after}", before.0);
}

/// In the binary form the server grants credit only as its client reads.
#[tokio::test]
async fn credit_follows_the_client() {
    let (daemon, mut worker) = with_worker(Form::Binary, 1).await;
    let asked = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = worker.expect_job().await;
    let reading = tokio::spawn(async move { asked.answer().await.finish().await.body.len() });
    let chunk = format!("data: {}\n\n", "x".repeat(32 * 1024 - 8));
    let mut sent = 0;
    // More than the initial credit, so it must be renewed as it is used up and read.
    for _ in 0..64 {
        while sent + chunk.len() as u64 > 256 * 1024 + worker.credit(&job) {
            let so_far = worker.credit(&job);
            worker.expect_credit(&job, so_far + 1).await;
        }
        worker.chunk(&job, &chunk).await;
        sent += chunk.len() as u64;
    }
    worker.finish(&job).await;
    assert_eq!(reading.await.unwrap() as u64, sent);
}

/// On one stock link, too, a stream that is not read holds up no other.
#[tokio::test]
async fn a_slow_client_does_not_hold_up_others_on_a_stock_link() {
    let (daemon, mut worker) = with_worker(Form::Stock, 2).await;
    let slow = daemon.client().post(CHAT, &ask(true)).open().await;
    let slow_job = worker.expect_job().await;
    worker.chunk(&slow_job, "data: 1\n\n").await;
    let slow = slow.answer().await;
    let quick = daemon.client().post(CHAT, &ask(true)).open().await;
    let quick_job = worker.expect_job().await;
    let before = daemon.resident_bytes();
    let flood = format!("data: {}\n\n", "x".repeat(1024 * 1024));
    let mut quick = {
        worker.chunk(&quick_job, "data: begin\n\n").await;
        quick.answer().await
    };
    quick.expect("data: begin\n\n").await;
    for number in 0..64 {
        worker.chunk(&slow_job, &flood).await;
        let chunk = format!("data: {number}\n\n");
        worker.chunk(&quick_job, &chunk).await;
        quick.expect(&chunk).await;
    }
    let after = daemon.resident_bytes();
    assert!(after < before + MAY_GROW, "{before} to {after}");
    worker.finish(&quick_job).await;
    assert_eq!(quick.next_chunk().await, None);
    drop(slow);
    daemon.is_idle().await;
}

/// A stock worker knows no credit. The server does not grow for it either, nor let it hold others
/// up.
#[tokio::test]
async fn a_slow_client_of_a_stock_worker_is_bounded_too() {
    let daemon = serve().start().await;
    let mut flooding = join(&daemon, Form::Stock, "flooding", 1).await;
    let slow = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = flooding.expect_job().await;
    let mut other = join(&daemon, Form::Stock, "other", 1).await;
    flooding.chunk(&job, "data: 1\n\n").await;
    let slow = slow.answer().await;
    let before = daemon.resident_bytes();
    let flood = tokio::spawn(async move {
        let chunk = format!("data: {}\n\n", "x".repeat(64 * 1024));
        for _ in 0..2048 {
            flooding.chunk(&job, &chunk).await;
        }
    });
    let quick = daemon.client().post(CHAT, &ask(true)).open().await;
    let job = other.expect_job().await;
    other.chunk(&job, "data: begin\n\n").await;
    let mut quick = quick.answer().await;
    quick.expect("data: begin\n\n").await;
    for number in 0..500 {
        let chunk = format!("data: {number}\n\n");
        other.chunk(&job, &chunk).await;
        quick.expect(&chunk).await;
    }
    let after = daemon.resident_bytes();
    assert!(after < before + MAY_GROW, "{before} to {after}");
    flood.abort();
    drop(slow);
    other.finish(&job).await;
    daemon.is_idle().await;
}

/// Worker and server both give back the memory that large requests needed.
#[tokio::test]
async fn large_bodies_leave_nothing_behind() {
    const BODIES: usize = 8;
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let worker = lend(&daemon, &backend, BODIES as u32).await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    let before = (daemon.resident_bytes(), worker.resident_bytes());
    let body = json!({
        "model": "m", "messages": [{"role": "user", "content": "x".repeat(30 * MIB)}],
    });
    let asked: Vec<_> = (0..BODIES).map(|_| post(&daemon.client(), CHAT, body.clone())).collect();
    for answer in asked {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    let small = async || {
        daemon.resident_bytes() < before.0 + MAY_GROW
            && worker.resident_bytes() < before.1 + MAY_GROW
    };
    eventually("memory being given back", Duration::from_secs(30), small).await;
}

/// Clients that read nothing, for as long as the test lasts.
const STALLED: usize = 48;

/// The most that each of them may cost the server. All of the worker's credit of 256 KiB may have come, up to 128 KiB
/// wait at the connection, and pieces keep the buffers that they were read into.
const EACH: u64 = 640 * 1024;

#[tokio::test]
async fn a_stalled_stream_costs_little_more_than_its_credit() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let _worker = lend(&daemon, &backend, 1 + STALLED as u32).await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(true)).await.status, 200);
    let before = daemon.resident_bytes();
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        backend.then(flood());
        stalled.push(daemon.client().post(CHAT, &ask(true)).open().await.answer().await);
    }
    let gate = Gate::closed();
    let chunks: Vec<_> = (0..500).map(|number| format!("data: {number}\n\n")).collect();
    backend.then(Reply::stream(&chunks, &gate));
    let mut quick = daemon.client().post(CHAT, &ask(true)).open().await.answer().await;
    for chunk in &chunks {
        gate.open(1);
        quick.expect(chunk).await;
    }
    let grown = daemon.resident_bytes().saturating_sub(before);
    assert!(grown < STALLED as u64 * EACH, "{} for each", grown / STALLED as u64);
    drop(stalled);
}

/// A body of this many bytes, made of the smallest possible messages.
fn tiny_messages(bytes: usize) -> String {
    let message = r#"{"role":"user","content":"a"},"#;
    let messages = message.repeat(bytes / message.len());
    format!(r#"{{"model":"m","messages":[{}]}}"#, messages.trim_end_matches(','))
}

#[tokio::test]
async fn counting_tokens_takes_little_memory_and_gives_it_back() {
    let daemon = serve().start().await;
    let client = daemon.client();
    let count =
        |body: String| client.request("POST", "/v1/messages/count_tokens").body(body).send();
    assert_eq!(count(tiny_messages(MIB)).await.status, 200);
    let (before, body) = (daemon.resident_bytes(), tiny_messages(28 * MIB));
    let three = [(); 3].map(|()| tokio::spawn(count(body.clone())));
    for counted in three {
        let counted = counted.await.unwrap();
        assert_eq!((counted.status, counted.header("x-warren-usage")), (200, Some("estimated")));
        assert!(counted.json()["input_tokens"].as_u64().unwrap() > 4_000_000);
    }
    let grown = daemon.peak_resident_bytes().saturating_sub(before);
    assert!(grown < 3 * 3 * body.len() as u64, "{grown} at the peak");
    let is_back = async || daemon.resident_bytes() < before + MAY_GROW;
    eventually("memory given back", DEADLINE, is_back).await;
}
