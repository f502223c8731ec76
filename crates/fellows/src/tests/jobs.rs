//! Jobs between servers.

use std::time::Duration;

use bytes::Bytes;
use scheduler::{Answer, Event, Failure, Outcome, Usage};
use tokio::time::Instant;

use crate::testing::{Lent, Net, Server, ok};

/// How soon the loss of a server is noticed.
const NOTICED: Duration = Duration::from_secs(3);

/// The body of an answer, and whether it is whole.
async fn read(answer: Answer) -> (Vec<u8>, bool) {
    let (body, failure) = read_all(answer).await;
    (body, failure.is_none())
}

/// The body of an answer, and why it is not whole.
async fn read_all(mut answer: Answer) -> (Vec<u8>, Option<Failure>) {
    let mut body = Vec::new();
    loop {
        match answer.next().await {
            Event::Chunk(bytes) => body.extend_from_slice(&bytes),
            Event::End => return (body, None),
            Event::Failed(failure) => return (body, Some(failure)),
        }
    }
}

/// Answers with these pieces, one after the other.
async fn answer(lent: &mut Lent, pieces: usize, size: usize) {
    let mut job = lent.assigned().await;
    job.answer.head(ok()).unwrap();
    for number in 0..pieces {
        job.answer.chunk(Bytes::from(vec![number as u8; size])).unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    job.answer.report(Usage { completion_tokens: Some(9), ..Usage::default() });
    job.answer.end();
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_to_a_fellow_as_it_is_and_its_usage_comes_back() {
    let (mut one, other) = Server::two(&Net::default()).await;
    let mut lent = one.lend(1);
    other.sees_worker().await;
    let body = Bytes::from(vec![7; 700_000]);
    let mut reply = other.ask(body.clone());
    let mut job = lent.assigned().await;
    assert_eq!((job.request.body.clone(), job.request.headers.len()), (body, 1));
    job.answer.head(ok()).unwrap();
    assert_eq!(reply.head().await.unwrap().status, 200);
    job.answer.chunk(Bytes::from_static(b"hello")).unwrap();
    job.answer.report(Usage { completion_tokens: Some(9), ..Usage::default() });
    job.answer.end();
    assert_eq!(read(reply).await, (b"hello".to_vec(), true));
    let ended = other.ended.lock().unwrap()[0].1.clone();
    assert_eq!(ended.usage.completion_tokens, Some(9));
    assert_eq!(ended.provider_name.as_deref(), Some("gpu"));
    let (facts, _) = one.ended.lock().unwrap()[0].clone();
    let lent_for = facts.lent.unwrap();
    assert_eq!((&*lent_for.home, lent_for.job), ("other", other.ended.lock().unwrap()[0].0.id));
}

#[tokio::test(start_paused = true)]
async fn lost_and_doubled_messages_change_no_answer() {
    let net = Net::default();
    let (mut one, other) = Server::two(&net).await;
    let mut lent = one.lend(1);
    other.sees_worker().await;
    net.is_bad(10, 15);
    for round in 0..20 {
        let mut reply = other.ask(Bytes::from(vec![round; 300_000]));
        let reading = tokio::spawn(async move {
            reply.head().await.unwrap();
            read_all(reply).await
        });
        answer(&mut lent, 40, 9_000).await;
        let expected: Vec<u8> = (0..40).flat_map(|number| vec![number; 9_000]).collect();
        let (body, failure) = reading.await.unwrap();
        assert_eq!((body.len(), failure), (expected.len(), None), "{round}");
        assert!(body == expected, "{round}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_fellow_that_is_silent_is_gone_within_three_seconds() {
    let net = Net::default();
    let (mut one, mut other) = Server::two(&net).await;
    let mut lent = one.lend(2);
    other.sees_worker().await;
    let mut begun = other.ask(Bytes::from_static(b"{}"));
    let mut job = lent.assigned().await;
    job.answer.head(ok()).unwrap();
    job.answer.chunk(Bytes::from_static(b"a")).unwrap();
    begun.head().await.unwrap();
    let mut unbegun = other.ask(Bytes::from_static(b"{}"));
    let second = lent.assigned().await;
    let mut own = other.lend(1);
    net.cut();
    let cut = Instant::now();
    assert_eq!(read(begun).await, (b"a".to_vec(), false));
    let mut moved = own.assigned().await;
    assert!(cut.elapsed() <= NOTICED, "{:?}", cut.elapsed());
    moved.answer.head(ok()).unwrap();
    moved.answer.end();
    unbegun.head().await.unwrap();
    // The server that has the worker stops working for nobody.
    let stopped = [lent.canceled().await, lent.canceled().await];
    assert!(stopped.contains(&job.job) && stopped.contains(&second.job));
    assert!(cut.elapsed() <= NOTICED + Duration::from_secs(1), "{:?}", cut.elapsed());
    assert!(other.fellows.all().is_empty() && one.fellows.all().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_leaves_stops_the_worker_and_frees_its_slot() {
    let (mut one, other) = Server::two(&Net::default()).await;
    let mut lent = one.lend(1);
    other.sees_worker().await;
    for begins in [false, true] {
        let mut reply = other.ask(Bytes::from_static(b"{}"));
        let mut job = lent.assigned().await;
        if begins {
            job.answer.head(ok()).unwrap();
            reply.head().await.unwrap();
        }
        drop(reply);
        assert_eq!(lent.canceled().await, job.job);
        assert!(matches!(
            other.ended.lock().unwrap().last().unwrap().1.outcome,
            Outcome::ClientGone
        ));
    }
    // An idle slot goes back after a while.
    while one.fellows.status().slots.lent > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(other.fellows.status().slots.borrowed, 0);
    assert_eq!((one.scheduler.counts(), other.scheduler.counts()), ((0, 0), (0, 0)));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_holds_up_its_fellows_worker() {
    let (mut one, other) = Server::two(&Net::default()).await;
    let mut lent = one.lend(1);
    other.sees_worker().await;
    let mut reply = other.ask(Bytes::from_static(b"{}"));
    let mut job = lent.assigned().await;
    job.answer.head(ok()).unwrap();
    reply.head().await.unwrap();
    let mut held = 0;
    // What is not taken by the home stays in the exchange of the serving server, which gives its worker no credit.
    for _ in 0..64 {
        held = job.answer.chunk(Bytes::from(vec![1; 64 * 1024])).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(held > 3 << 20, "{held} bytes wait for the reader");
    job.answer.end();
    let (body, is_whole) = read(reply).await;
    assert!(is_whole && body.len() == 64 * 64 * 1024);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_for_a_server_goes_elsewhere() {
    let (mut one, mut other) = Server::two(&Net::default()).await;
    let _lent = one.lend(1);
    other.sees_worker().await;
    let mut reply = other.ask(Bytes::from(vec![7; (1 << 20) + 1]));
    let mut own = other.lend(1);
    let mut job = own.assigned().await;
    job.answer.head(ok()).unwrap();
    job.answer.end();
    assert_eq!(reply.head().await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_drains_gets_nothing_new() {
    let (mut one, mut other) = Server::two(&Net::default()).await;
    let mut lent = one.lend(2);
    other.sees_worker().await;
    let mut running = other.ask(Bytes::from_static(b"{}"));
    let mut job = lent.assigned().await;
    one.fellows.drain();
    while !other.fellows.all()[0].is_draining {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut new = other.ask(Bytes::from_static(b"{}"));
    let mut own = other.lend(1);
    let mut taken = own.assigned().await;
    for answer in [&mut job.answer, &mut taken.answer] {
        answer.head(ok()).unwrap();
    }
    job.answer.end();
    taken.answer.end();
    assert_eq!(running.head().await.unwrap().status, 200);
    assert_eq!(new.head().await.unwrap().status, 200);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_goes_after_its_answer_cuts_nothing() {
    let (mut one, other) = Server::two(&Net::default()).await;
    let mut lent = one.lend(1);
    other.sees_worker().await;
    let mut reply = other.ask(Bytes::from_static(b"{}"));
    let mut job = lent.assigned().await;
    job.answer.head(ok()).unwrap();
    let body = vec![3; 2 << 20];
    job.answer.chunk(Bytes::from(body.clone())).unwrap();
    job.answer.end();
    reply.head().await.unwrap();
    drop(lent);
    while other.scheduler.status().workers.iter().any(|worker| !worker.draining) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(read(reply).await == (body, true));
    while !other.scheduler.status().workers.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
