//! A job that loses its provider.

use std::time::Duration;

use bytes::Bytes;
use dispatch::{Ending, LeaveReason};
use http::StatusCode;
use scheduler::{CancelReason, Config, Event, Head, WriteError};

use crate::kit::{Kit, ok};

#[tokio::test(start_paused = true)]
async fn moves_unseen_before_its_answer_begins() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let mut answer = kit.submit();
    let lost = first.assigned().await;
    let mut second = kit.join(1);
    first.membership.leave(LeaveReason::Closed);
    drop(lost);
    let mut next = second.assigned().await;
    assert_eq!((next.attempt, &*next.request.body), (1, &b"{}"[..]));
    next.answer.head(ok()).unwrap();
    next.answer.end();
    assert_eq!(answer.head().await.unwrap().status, StatusCode::OK);
    assert_eq!(kit.last_ended().requeues, 1);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_after_the_job_was_taken_back_is_refused() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let mut answer = kit.submit();
    let mut late = first.assigned().await;
    kit.scheduler.drain(first.membership.id(), "maintenance", Duration::from_secs(1));
    assert_eq!(first.canceled().await.1, CancelReason::GracefulShutdown);
    assert_eq!(kit.slots(), (0, 1), "it waits for another");
    assert_eq!(late.answer.head(ok()), Err(WriteError::Over));
    late.answer.fail("and this is not heard");
    let mut second = kit.join(1);
    let mut next = second.assigned().await;
    assert_eq!(next.attempt, 1);
    let status = StatusCode::ACCEPTED;
    next.answer.head(Head { status, ..ok() }).unwrap();
    next.answer.chunk(Bytes::from_static(b"second")).unwrap();
    next.answer.end();
    assert_eq!(answer.head().await.unwrap().status, status);
    assert!(matches!(answer.next().await, Event::Chunk(chunk) if chunk == "second"));
    assert_eq!((kit.slots(), kit.last_ended().requeues), ((0, 0), 1));
}

#[tokio::test(start_paused = true)]
async fn goes_to_another_when_its_provider_fails_it_and_says_why_when_there_is_none() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let mut answer = kit.submit();
    let failed = first.assigned().await;
    let mut second = kit.join(1);
    failed.answer.fail("the backend refused the connection");
    second.assigned().await.answer.fail("so did this one");
    let failure = answer.head().await.unwrap_err();
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("so did this one"));
}

#[tokio::test(start_paused = true)]
async fn a_provider_passes_on_a_job_that_it_cannot_take_or_refuses_it() {
    let mut kit = Kit::new(Config::default());
    let (mut first, mut second) = (kit.join(1), kit.join(1));
    let mut answer = kit.submit();
    let cannot = first.assigned().await;
    assert!(cannot.answer.pass_on().is_ok());
    let neither = second.assigned().await;
    let Err(mut writer) = neither.answer.pass_on() else { panic!("there is nobody else") };
    writer.head(Head { status: StatusCode::BAD_REQUEST, ..ok() }).unwrap();
    writer.end();
    assert_eq!(answer.head().await.unwrap().status, StatusCode::BAD_REQUEST);
    assert_eq!(kit.slots(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_job_that_was_cancelled_cannot_be_passed_on() {
    let mut kit = Kit::new(Config::default());
    let (mut first, mut second) = (kit.join(1), kit.join(1));
    let answer = kit.submit();
    let assigned = first.assigned().await;
    drop(answer);
    assert!(assigned.answer.pass_on().is_err());
    first.canceled().await;
    assert!(second.calls.try_recv().is_err(), "it was given to nobody");
}

#[tokio::test(start_paused = true)]
async fn a_writer_dropped_inside_a_call_of_the_scheduler_fails_the_job() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut answer = kit.submit();
    drop(provider.assigned().await);
    assert_eq!(answer.head().await.unwrap_err().ending, Ending::ProviderFailed);
    assert_eq!(kit.slots(), (0, 0));
}
