//! A job that loses its provider.

use std::time::Duration;

use bytes::Bytes;
use dispatch::{Ending, LeaveReason};
use http::StatusCode;
use scheduler::{CancelReason, Config, Event, Head, Outcome, WriteError};

use crate::kit::{Kit, ProviderCall, ok};

#[tokio::test(start_paused = true)]
async fn moves_unseen_before_its_answer_begins() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let mut answer = kit.submit();
    let lost = first.assigned().await;
    let mut second = kit.join(1);
    first.membership.leave(LeaveReason::Closed);
    drop(lost);
    let mut again = second.assigned().await;
    assert_eq!((again.attempt, &*again.request.body), (1, &b"{}"[..]));
    again.answer.head(ok()).unwrap();
    again.answer.end();
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
    let mut again = second.assigned().await;
    assert_eq!(again.attempt, 1);
    let status = StatusCode::ACCEPTED;
    again.answer.head(Head { status, ..ok() }).unwrap();
    again.answer.chunk(Bytes::from_static(b"second")).unwrap();
    again.answer.end();
    assert_eq!(answer.head().await.unwrap().status, status);
    assert!(matches!(answer.next().await, Event::Chunk(chunk) if chunk == "second"));
    assert_eq!((kit.slots(), kit.last_ended().requeues), ((0, 0), 1));
}

#[tokio::test(start_paused = true)]
async fn a_head_of_a_provider_that_left_is_refused() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let _answer = kit.submit();
    let mut late = first.assigned().await;
    first.membership.leave(LeaveReason::Closed);
    assert_eq!(late.answer.head(ok()), Err(WriteError::Over));
    assert_eq!(kit.slots(), (0, 1));
    assert_eq!(kit.join(1).assigned().await.attempt, 1);
}

#[tokio::test(start_paused = true)]
async fn ends_after_its_answer_has_begun() {
    let mut kit = Kit::new(Config::default());
    let mut first = kit.join(1);
    let _second = kit.join(1);
    let mut answer = kit.submit();
    let mut assignment = first.assigned().await;
    assignment.answer.head(ok()).unwrap();
    answer.head().await.unwrap();
    first.membership.leave(LeaveReason::HeartbeatLost);
    let Event::Failed(failure) = answer.next().await else { panic!("not failed") };
    assert_eq!(failure.ending, Ending::ProviderLost);
}

#[tokio::test(start_paused = true)]
async fn gives_up_after_three_requeues() {
    let mut kit = Kit::new(Config::default());
    let mut answer = kit.submit();
    for attempt in 0..4 {
        let mut provider = kit.join(1);
        assert_eq!(provider.assigned().await.attempt, attempt);
        provider.membership.leave(LeaveReason::Closed);
    }
    assert_eq!(answer.head().await.unwrap_err().ending, Ending::RequeueExhausted);
    assert_eq!(kit.slots(), (0, 0));
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
    assert!(second.told.try_recv().is_err(), "it was given to nobody");
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

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_backend_is_an_answer() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut answer = kit.submit();
    let mut assignment = provider.assigned().await;
    let status = StatusCode::INTERNAL_SERVER_ERROR;
    assignment.answer.head(Head { status, ..ok() }).unwrap();
    assignment.answer.end();
    assert_eq!(answer.head().await.unwrap().status, status);
    assert_eq!(kit.last_ended().outcome, Outcome::Answered(status));
}

#[tokio::test(start_paused = true)]
async fn a_drained_provider_finishes_and_is_retired() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(2);
    let _answer = kit.submit();
    let mut assignment = provider.assigned().await;
    assert!(kit.scheduler.drain(provider.membership.id(), "maintenance", Duration::from_secs(9)));
    let _waiting = kit.submit();
    assert_eq!(kit.slots(), (1, 1), "nothing more is assigned");
    assignment.answer.head(ok()).unwrap();
    assignment.answer.end();
    assert!(matches!(provider.told.recv().await, Some(ProviderCall::Retired(true))));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_what_waits_and_lets_finish_what_is_in_flight() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut served = kit.submit();
    let mut waiting = kit.submit();
    let mut assignment = provider.assigned().await;
    kit.scheduler.shut_down("stopping", Duration::from_secs(30));
    assert_eq!(waiting.head().await.unwrap_err().ending, Ending::ShuttingDown);
    assert_eq!(kit.submit().head().await.unwrap_err().ending, Ending::ShuttingDown);
    assignment.answer.head(ok()).unwrap();
    assignment.answer.end();
    assert!(served.head().await.is_ok() && kit.scheduler.is_idle());
}
