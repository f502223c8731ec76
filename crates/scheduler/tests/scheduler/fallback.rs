//! A job that goes on to another model.

use dispatch::{Ending, LeaveReason};
use scheduler::{Config, Outcome};

use crate::kit::{Kit, ok};

#[tokio::test(start_paused = true)]
async fn the_account_tells_who_served_what_in_the_end() {
    let mut kit = Kit::new(Config::default());
    let (mut first, mut second) = (kit.serving("one", "m"), kit.serving("two", "n"));
    let job = kit.alias();
    let mut answer = kit.scheduler.submit(job);
    first.assigned().await.answer.fail("the backend is down");
    let mut next = second.assigned().await;
    assert_eq!(next.attempt, 1);
    next.answer.head(ok()).unwrap();
    next.answer.end();
    answer.head().await.unwrap();
    let (facts, ended) = kit.ended.lock().unwrap().last().unwrap().clone();
    assert_eq!((facts.model.as_str(), facts.endpoint.path()), ("fast", "/v1/chat/completions"));
    assert!(matches!(ended.outcome, Outcome::Answered(_)));
    assert_eq!(ended.provider, Some(second.membership.id()));
    assert_eq!(ended.provider_name.as_deref(), Some("two"));
    assert_eq!(ended.served_model.as_ref().map(|model| model.as_str()), Some("n"));
    assert_eq!(ended.requeues, 1);
}

#[tokio::test(start_paused = true)]
async fn the_jobs_own_model_is_not_told_twice() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let _answer = kit.submit();
    let mut assignment = provider.assigned().await;
    assignment.answer.head(ok()).unwrap();
    assignment.answer.end();
    assert_eq!(kit.last_ended().served_model, None);
}

#[tokio::test(start_paused = true)]
async fn a_writer_of_the_model_before_is_heard_no_more() {
    let mut kit = Kit::new(Config { max_requeue_count: 0, ..Config::default() });
    let mut first = kit.serving("one", "m");
    let mut second = kit.serving("two", "n");
    let job = kit.alias();
    let mut answer = kit.scheduler.submit(job);
    let mut late = first.assigned().await;
    first.membership.leave(LeaveReason::Closed);
    let served = second.assigned().await;
    assert!(late.answer.head(ok()).is_err());
    late.answer.fail("too late");
    served.answer.fail("nor this one");
    let failure = answer.head().await.unwrap_err();
    assert_eq!(failure.ending, Ending::ProviderFailed);
    assert_eq!(failure.detail.as_deref(), Some("nor this one"));
}
