//! Both ends of a link within the process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{sync::oneshot, task::yield_now};

use super::*;

type End = (InProcessLink, Outbox);

fn pair() -> (End, End) {
    let [near, far] = InProcessLink::pair();
    (near, far)
}

#[tokio::test]
async fn frames_arrive_in_order_and_uncopied() {
    let ((mut near, _), (_far, outbox)) = pair();
    let body = Bytes::from(vec![7; 100_000]);
    outbox.push("hello".to_owned()).unwrap();
    outbox.push(body.clone()).unwrap();
    assert_eq!(near.next().await.unwrap(), Some("hello".to_owned().into()));
    let Some(Frame::Binary(came)) = near.ready() else { panic!("a binary frame") };
    assert_eq!(came.as_ptr(), body.as_ptr());
    assert_eq!(near.ready(), None);
}

#[tokio::test]
async fn a_frame_wakes_the_end_that_waits_for_it() {
    let ((mut near, _), (_far, outbox)) = pair();
    let waiting = tokio::spawn(async move { near.next().await });
    yield_now().await;
    outbox.push("now".to_owned()).unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), Some("now".to_owned().into()));
}

/// With one thread, whose woken tasks run first.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn frames_of_tasks_that_are_ready_together_are_taken_in_one_turn() {
    let ((mut near, _), (_far, outbox)) = pair();
    let (waits, waited) = oneshot::channel();
    let reading = tokio::spawn(async move {
        waits.send(()).unwrap();
        [near.next().await.unwrap(), near.ready(), near.ready()]
    });
    tokio::spawn(async move {
        waited.await.unwrap();
        for _ in 0..3 {
            let outbox = outbox.clone();
            tokio::spawn(async move { outbox.push("now".to_owned()).unwrap() });
        }
    });
    assert!(reading.await.unwrap().iter().all(Option::is_some));
}

#[tokio::test]
async fn an_end_gives_way_a_bounded_number_of_times() {
    let ((mut near, _), (_far, outbox)) = pair();
    let reading = tokio::spawn(async move { near.next().await });
    yield_now().await;
    let sent = Arc::<AtomicU32>::default();
    let count = Arc::clone(&sent);
    // It sends one frame each time that the reader has given way.
    let sending = tokio::spawn(poll_fn(move |cx| {
        outbox.push("more".to_owned()).unwrap();
        count.fetch_add(1, Ordering::Relaxed);
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    assert!(reading.await.unwrap().unwrap().is_some());
    sending.abort();
    let sent = sent.load(Ordering::Relaxed);
    assert!((TURNS..=2 * TURNS).contains(&sent), "{sent}");
}

#[tokio::test]
async fn an_end_that_does_not_read_holds_the_senders_up() {
    let ((mut near, _), (_far, outbox)) = pair();
    outbox.push(Bytes::from(vec![0; 1 << 20])).unwrap();
    let sender = outbox.clone();
    let sent = tokio::spawn(async move { sender.send(Bytes::from_static(b"data")).await });
    yield_now().await;
    assert!(!sent.is_finished() && !outbox.has_room());
    assert_eq!(near.next().await.unwrap().unwrap().len(), 1 << 20);
    sent.await.unwrap().unwrap();
    assert_eq!(near.next().await.unwrap().unwrap().len(), 4);
}

#[tokio::test]
async fn a_close_is_seen_with_its_reason_after_what_was_sent_before() {
    let ((mut near, _), (far, outbox)) = pair();
    outbox.push("last".to_owned()).unwrap();
    let closing = tokio::spawn(async move { far.close(1008, "worker heartbeat timed out").await });
    yield_now().await;
    assert_eq!(near.next().await.unwrap(), Some("last".to_owned().into()));
    assert_eq!(near.next().await.unwrap(), None);
    assert_eq!(near.next().await.unwrap(), None);
    assert_eq!(near.close_reason(), Some((1008, "worker heartbeat timed out".to_owned())));
    assert!(!closing.is_finished(), "it waits for the answer");
    drop(near);
    closing.await.unwrap();
    assert!(outbox.is_closed());
}

#[tokio::test(start_paused = true)]
async fn both_ends_may_close_at_once() {
    let ((near, near_outbox), (far, _)) = pair();
    near_outbox.push("nobody reads this".to_owned()).unwrap();
    let began = Instant::now();
    tokio::join!(near.close(1000, "a"), far.close(1000, "b"));
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_close_does_not_wait_for_ever() {
    let ((near, _), _far) = pair();
    let began = Instant::now();
    near.close(1000, "").await;
    assert_eq!(began.elapsed(), CLOSE_DEADLINE);
}

#[tokio::test]
async fn an_end_whose_far_end_is_gone_is_over_and_takes_nothing() {
    let ((mut near, outbox), far) = pair();
    drop(far);
    assert_eq!(near.next().await.unwrap(), None);
    assert_eq!(near.close_reason(), None);
    assert!(outbox.push("late".to_owned()).is_err());
}

#[tokio::test]
async fn an_end_that_is_given_up_says_so_and_its_far_end_is_over() {
    let ((mut near, outbox), (mut far, _)) = pair();
    let waiting = tokio::spawn(async move { (near.next().await, near.write_only().await) });
    yield_now().await;
    outbox.close();
    let ended = waiting.await.unwrap();
    assert!(matches!(ended, (Err(LinkError::GivenUp), LinkError::GivenUp)));
    assert_eq!(far.next().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_heard_only_if_the_far_end_answers() {
    let ((mut near, _), (mut far, _)) = pair();
    let begun = near.heard();
    for _ in 0..10 {
        tokio::time::advance(Duration::from_secs(5)).await;
        near.ping();
        assert!(timeout(Duration::from_secs(1), near.next()).await.is_err());
        assert_eq!(near.heard(), begun, "nobody has answered");
    }
    let answered = Instant::now();
    let both = async { tokio::join!(near.next(), far.next()) };
    assert!(timeout(Duration::from_secs(1), both).await.is_err());
    assert_eq!(near.heard(), answered);
    near.ping();
    let asked_again = Instant::now();
    let both = async { tokio::join!(near.next(), far.next()) };
    assert!(timeout(Duration::from_secs(1), both).await.is_err());
    assert_eq!(near.heard(), asked_again);
}

#[tokio::test]
async fn a_flood_of_frames_gives_way_to_other_tasks() {
    let ((mut near, _), (_far, outbox)) = pair();
    (0..1000).for_each(|_| outbox.push("flood".to_owned()).unwrap());
    let read = Arc::<AtomicU32>::default();
    let count = Arc::clone(&read);
    let reading = tokio::spawn(async move {
        while let Ok(Some(_)) = near.next().await {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    yield_now().await;
    assert!((1..1000).contains(&read.load(Ordering::Relaxed)));
    reading.abort();
}
