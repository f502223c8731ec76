//! Backends that answer with an error of their own: another provider is asked before the client
//! hears of it.

use bytes::Bytes;
use dispatch::Ending;
use http::StatusCode;
use scheduler::{Answer, Assignment, Config, Event, Head, Job, Outcome, Scheduler, WriteError};

use crate::kit::{Kit, ok};

fn refusal(status: u16) -> Head {
    Head { status: StatusCode::from_u16(status).unwrap(), ..ok() }
}

/// Answers whole, with this body.
fn answers(mut assignment: Assignment, head: Head, body: &'static str) {
    assignment.answer.head(head).unwrap();
    assignment.answer.chunk(Bytes::from_static(body.as_bytes())).unwrap();
    assignment.answer.end();
}

/// Refuses with a status that the client is not to hear of.
fn refuses(mut assignment: Assignment, status: u16) {
    assert_eq!(assignment.answer.head(refusal(status)), Err(WriteError::Refused));
    assignment.answer.fail("the provider's own words");
}

async fn whole(answer: &mut Answer) -> (u16, String) {
    let head = answer.head().await.unwrap();
    let mut body = Vec::new();
    while let Event::Chunk(chunk) = answer.next().await {
        body.extend_from_slice(&chunk);
    }
    (head.status.as_u16(), String::from_utf8(body).unwrap())
}

fn is_resting(scheduler: &Scheduler) -> usize {
    scheduler.status().workers.iter().filter(|worker| worker.resting.is_some()).count()
}

#[tokio::test(start_paused = true)]
async fn a_5xx_is_a_fault_and_goes_to_the_next_until_nobody_is_left() {
    let mut kit = Kit::new(Config { faults_to_rest: 1, ..Config::default() });
    let mut all = [kit.join(1), kit.join(1), kit.join(1)];
    let mut answer = kit.submit();
    for (refusals, provider) in all.iter_mut().take(2).enumerate() {
        refuses(provider.assigned().await, 503);
        assert_eq!(is_resting(&kit.scheduler), refusals + 1);
    }
    answers(all[2].assigned().await, refusal(500), "the last one's");
    assert_eq!(whole(&mut answer).await, (500, "the last one's".to_owned()));
    let ended = kit.last_ended();
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    assert_eq!((ended.outcome, ended.requeues), (Outcome::Answered(status), 2));
    assert_eq!((ended.bytes, ended.provider), (14, Some(all[2].membership.id())));
    assert_eq!((kit.ended.lock().unwrap().len(), kit.slots()), (1, (0, 0)), "one job, one row");
}

#[tokio::test(start_paused = true)]
async fn a_4xx_is_the_clients_to_hear() {
    for status in [400, 404, 413, 422] {
        let mut kit = Kit::new(Config::default());
        let (mut first, _second) = (kit.join(1), kit.join(1));
        let mut answer = kit.submit();
        answers(first.assigned().await, refusal(status), "no");
        assert_eq!(whole(&mut answer).await, (status, "no".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_429_goes_only_to_who_is_free() {
    let mut kit = Kit::new(Config::default());
    let (mut first, mut second) = (kit.serving("test", "m"), kit.serving("test", "n"));
    let job = kit.alias();
    let mut answer = kit.scheduler.submit(job);
    refuses(first.assigned().await, 429);
    let at_second = second.assigned().await;
    let job = kit.alias();
    let mut throttled = kit.scheduler.submit(job);
    answers(first.assigned().await, refusal(429), "later");
    assert_eq!(whole(&mut throttled).await, (429, "later".to_owned()), "the other is busy");
    answers(at_second, ok(), "served");
    assert_eq!(whole(&mut answer).await, (200, "served".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_went_in_a_circle_is_nobodys_fault() {
    let mut kit = Kit::new(Config { faults_to_rest: 1, ..Config::default() });
    let (mut first, mut second) = (kit.join(1), kit.join(1));
    let mut answer = kit.submit();
    refuses(first.assigned().await, 508);
    answers(second.assigned().await, refusal(508), "a circle");
    assert_eq!(whole(&mut answer).await, (508, "a circle".to_owned()));
    assert_eq!(is_resting(&kit.scheduler), 0);
}

#[tokio::test(start_paused = true)]
async fn when_the_other_is_gone_meanwhile_the_failure_tells_the_status() {
    let mut kit = Kit::new(Config::default());
    let (mut first, second) = (kit.join(1), kit.join(1));
    let mut answer = kit.submit();
    let mut assignment = first.assigned().await;
    assert_eq!(assignment.answer.head(refusal(503)), Err(WriteError::Refused));
    assert!(!assignment.answer.has_begun());
    drop(second);
    assignment.answer.fail("the provider's own words");
    let failure = answer.head().await.unwrap_err();
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("its backend answered 503 Service Unavailable"));
}

#[tokio::test(start_paused = true)]
async fn a_pinned_jobs_error_is_passed_on() {
    let mut kit = Kit::new(Config::default());
    let (mut first, _second) = (kit.join(1), kit.join(1));
    let job = Job { pinned: Some(first.membership.id()), ..kit.job() };
    let mut answer = kit.scheduler.submit(job);
    answers(first.assigned().await, refusal(500), "broken");
    assert_eq!(whole(&mut answer).await, (500, "broken".to_owned()));
}
