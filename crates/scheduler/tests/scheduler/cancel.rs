//! A consumer that leaves frees its slot, whatever state its job was in.

use bytes::Bytes;
use scheduler::{CancelReason, Config, Event, Outcome, WriteError};

use crate::kit::{Kit, ok};

#[tokio::test(start_paused = true)]
async fn while_it_waits() {
    let mut kit = Kit::new(Config::default());
    let answer = kit.submit();
    assert_eq!(kit.slots(), (0, 1));
    drop(answer);
    assert_eq!(kit.slots(), (0, 0));
    assert_eq!(kit.last_ended().outcome, Outcome::ClientGone);
}

#[tokio::test(start_paused = true)]
async fn before_the_first_byte() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let answer = kit.submit();
    let mut assignment = provider.assigned().await;
    let job = answer.job();
    drop(answer);
    assert_eq!(provider.canceled().await, (job, CancelReason::ClientDisconnect));
    assert_eq!(kit.slots(), (0, 0));
    assert_eq!(assignment.answer.head(ok()), Err(WriteError::Over), "late, and ignored");
}

#[tokio::test(start_paused = true)]
async fn in_the_middle_of_a_stream() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut answer = kit.submit();
    let mut assignment = provider.assigned().await;
    assignment.answer.head(ok()).unwrap();
    assignment.answer.chunk(Bytes::from_static(b"data: 1\n\n")).unwrap();
    answer.head().await.unwrap();
    drop(answer);
    assert_eq!(provider.canceled().await.1, CancelReason::ClientDisconnect);
    assert_eq!(kit.slots(), (0, 0));
    let ended = kit.last_ended();
    assert_eq!((ended.bytes, ended.usage.completion_tokens), (9, Some(9)), "counted as it passed");
}

#[tokio::test(start_paused = true)]
async fn not_after_the_end() {
    let mut kit = Kit::new(Config::default());
    let mut provider = kit.join(1);
    let mut answer = kit.submit();
    let mut assignment = provider.assigned().await;
    assignment.answer.head(ok()).unwrap();
    assignment.answer.end();
    assert_eq!(kit.slots(), (0, 0), "free before the client has read it");
    answer.head().await.unwrap();
    assert!(matches!(answer.next().await, Event::End));
    drop(answer);
    assert!(provider.calls.try_recv().is_err(), "nothing is cancelled");
    assert!(matches!(kit.last_ended().outcome, Outcome::Answered(_)));
}
