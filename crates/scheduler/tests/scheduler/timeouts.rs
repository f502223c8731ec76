//! Deadlines, kept by the scheduler's own task.

use std::time::Duration;

use bytes::Bytes;
use dispatch::Ending;
use scheduler::{CancelReason, Config, Event};
use tokio::time::{Instant, sleep};

use crate::kit::{Kit, ok};

#[tokio::test(start_paused = true)]
async fn a_job_that_nobody_takes_ends_after_the_queue_timeout() {
    let mut kit = Kit::new(Config::default());
    let began = Instant::now();
    let mut answer = kit.submit();
    assert_eq!(answer.head().await.unwrap_err().ending, Ending::QueueTimeout);
    assert_eq!(began.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_coming_ends_after_the_idle_timeout_counted_from_its_last_byte() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut answer = kit.submit();
    let mut assignment = provider.assigned().await;
    assignment.answer.head(ok()).unwrap();
    answer.head().await.unwrap();
    sleep(Duration::from_secs(200)).await;
    assignment.answer.chunk(Bytes::from_static(b"x")).unwrap();
    assert!(matches!(answer.next().await, Event::Chunk(_)));
    let last = Instant::now();
    let Event::Failed(failure) = answer.next().await else { panic!("not failed") };
    assert_eq!(failure.ending, Ending::IdleTimeout);
    assert_eq!(last.elapsed().as_secs(), 300);
    assert_eq!(provider.canceled().await.1, CancelReason::Timeout);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_its_providers_fault() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut answer = kit.submit();
    let mut assignment = provider.assigned().await;
    assignment.answer.head(ok()).unwrap();
    assignment.answer.chunk(Bytes::from_static(b"unread")).unwrap();
    sleep(Duration::from_secs(301)).await;
    assert_eq!(provider.canceled().await.1, CancelReason::ClientDisconnect);
    answer.head().await.unwrap();
    let Event::Failed(failure) = answer.next().await else { panic!("it is still kept") };
    assert_eq!(failure.ending, Ending::ClientStalled);
}
