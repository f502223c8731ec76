//! A link without a socket: what is said at one end, and in which order it is taken at the other.

use std::time::Duration;

use bytes::Bytes;
use protocol::mesh::cluster::{InferenceCancel, InferenceError, PieceKind};
use tokio::time::timeout;

use super::{
    lanes::{ANSWERS, MAX_BYTES, MAX_WAITING, PIECES},
    *,
};
use crate::testing::{Kind, id};

fn link() -> (Arc<Link>, Outgoing) {
    let (link, end) = crate::testing::link(&id(1), Kind::WarrenNear);
    (link, end.0)
}

fn small(request: &str) -> ClusterMessage {
    ClusterMessage::InferenceCancel(InferenceCancel { request_id: request.into() })
}

fn large(bytes: usize) -> ClusterMessage {
    let error_message = "x".repeat(bytes);
    let (request_id, code, status, body) = ("r".into(), None, None, None);
    ClusterMessage::InferenceError(InferenceError { request_id, error_message, code, status, body })
}

fn piece() -> Piece {
    let slice = Bytes::from_static(b"slice");
    Piece {
        kind: PieceKind::Data,
        transfer: [7; 16],
        file: 0,
        piece: 0,
        offset: 0,
        length: 5,
        slice,
    }
}

fn taken(outgoing: &mut Outgoing) -> Vec<u8> {
    let payload = outgoing.try_next().unwrap();
    let (head, body) = payload.parts();
    [head, body].concat()
}

/// The result of a future that cannot go on, within a second of no time.
async fn waits<F: Future>(future: F) -> bool {
    timeout(Duration::from_secs(1), future).await.is_err()
}

#[tokio::test]
async fn small_messages_go_before_answers_and_answers_before_pieces() {
    let (link, mut outgoing) = link();
    link.send(piece()).await.unwrap();
    link.say(&large(1)).await.unwrap();
    link.tell(&small("first")).unwrap();
    link.tell(&small("second")).unwrap();
    let order: Vec<_> = (0..4).map(|_| taken(&mut outgoing)).collect();
    assert_eq!(order[0], encode(&small("first"), Dialect::Flat));
    assert_eq!(order[1], encode(&small("second"), Dialect::Flat));
    assert_eq!(order[2], encode(&large(1), Dialect::Flat));
    assert_eq!(order[3], [&piece().head()[..], b"slice"].concat());
    assert!(outgoing.try_next().is_none());
}

#[tokio::test(start_paused = true)]
async fn answers_and_pieces_wait_for_room_and_small_messages_do_not() {
    let (link, mut outgoing) = link();
    link.say(&large(ANSWERS)).await.unwrap();
    for _ in 0..PIECES {
        link.send(piece()).await.unwrap();
    }
    assert!(waits(link.say(&small("late"))).await && waits(link.send(piece())).await);
    link.tell(&small("now")).unwrap();
    for _ in 0..3 {
        drop(outgoing.next().await.unwrap());
    }
    assert!(!waits(link.say(&small("late"))).await && !waits(link.send(piece())).await);
}

#[tokio::test(start_paused = true)]
async fn room_is_given_back_when_a_payload_is_dropped_and_not_before() {
    let (link, mut outgoing) = link();
    link.say(&large(ANSWERS)).await.unwrap();
    let payload = outgoing.next().await.unwrap();
    assert!(waits(link.say(&small("late"))).await);
    drop(payload);
    assert!(!waits(link.say(&small("late"))).await);
}

#[tokio::test]
async fn a_peer_that_does_not_read_loses_its_link() {
    let (link, _outgoing) = link();
    for _ in 0..MAX_WAITING {
        link.tell(&small("r")).unwrap();
    }
    assert_eq!(link.tell(&small("r")), Err(LinkClosed));
    assert!(link.why_closed().unwrap().contains("does not read"));
    let (link, _outgoing) = self::link();
    let mut count = 0;
    while link.tell(&large(MAX_FRAME / 2)).is_ok() {
        count += 1;
    }
    assert_eq!((count, link.is_closed()), (2 * MAX_BYTES / MAX_FRAME - 1, true));
}

#[tokio::test]
async fn a_message_over_16_mib_is_not_sent_and_costs_no_link() {
    let (link, mut outgoing) = link();
    assert_eq!(link.tell(&large(MAX_FRAME)), Err(LinkClosed));
    assert_eq!(link.say(&large(MAX_FRAME)).await, Err(LinkClosed));
    assert!(!link.is_closed() && outgoing.try_next().is_none());
}

#[tokio::test]
async fn after_the_close_waiting_small_messages_are_sent_and_no_more_are_queued() {
    let (link, mut outgoing) = link();
    link.say(&large(1)).await.unwrap();
    link.tell(&small("last")).unwrap();
    link.close("first");
    link.close("second");
    assert_eq!(link.why_closed().as_deref(), Some("first"));
    assert_eq!(link.tell(&small("late")), Err(LinkClosed));
    assert_eq!(link.say(&small("late")).await, Err(LinkClosed));
    assert_eq!(link.send(piece()).await, Err(LinkClosed));
    assert_eq!(taken(&mut outgoing), encode(&small("last"), Dialect::Flat));
    assert!(outgoing.next().await.is_none());
    testkit::within("the end", link.closed()).await;
}

#[tokio::test(start_paused = true)]
async fn senders_that_wait_for_room_hear_of_the_end() {
    let (link, outgoing) = link();
    link.say(&large(ANSWERS)).await.unwrap();
    let waiting = {
        let link = Arc::clone(&link);
        tokio::spawn(async move { link.say(&small("late")).await })
    };
    tokio::task::yield_now().await;
    drop(outgoing);
    assert_eq!(waiting.await.unwrap(), Err(LinkClosed));
    assert!(!link.is_usable());
}

#[tokio::test]
async fn a_link_that_is_degraded_is_not_used_until_it_recovers() {
    let (link, _outgoing) = link();
    link.set_degraded(true);
    assert!(!link.is_usable() && !link.is_closed());
    link.set_degraded(false);
    assert!(link.is_usable());
}

#[tokio::test]
async fn a_message_wakes_the_writer() {
    let (link, mut outgoing) = link();
    let sends = tokio::spawn(async move { outgoing.next().await.is_some() });
    tokio::task::yield_now().await;
    link.tell(&small("r")).unwrap();
    assert!(testkit::within("a payload", sends).await.unwrap());
}
