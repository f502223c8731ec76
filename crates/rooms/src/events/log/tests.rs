//! Watchers: what they get, when they are woken, and when they are let go.

use std::{collections::BTreeSet, time::Duration};

use protocol::room::{
    RoomEvent, ServerMessage,
    event::{ParticipantRef, RoomClosed},
    message::{LlmToken, ParticipantLeft},
};
use tokio::{task::JoinSet, time::timeout};

use super::*;
use crate::events::Announcement;

const NOW: u64 = 1_795_171_198_228;

/// Somebody with this id left.
fn left(id: &str) -> EncodedEvent {
    Announcement::both(
        RoomEvent::ParticipantLeft(ParticipantRef { participant_id: id.to_owned() }),
        ServerMessage::ParticipantLeft(ParticipantLeft { participant_id: id.to_owned() }),
    )
    .encode(NOW, "NZZ6LS")
}

/// An event that is no message.
fn without_message() -> EncodedEvent {
    let event = RoomEvent::ParticipantOffline(ParticipantRef { participant_id: "p".to_owned() });
    Announcement::event(event).encode(NOW, "NZZ6LS")
}

fn token() -> EncodedEvent {
    let token = LlmToken {
        request_id: "1".to_owned(),
        participant_id: "p".to_owned(),
        token: "x".to_owned(),
        seq: 0,
    };
    Announcement::both(RoomEvent::LlmToken(token.clone()), ServerMessage::LlmToken(token))
        .encode(NOW, "A")
}

fn log() -> Arc<Log> {
    Log::new(Bounds::ROOM, NOW)
}

fn text(next: Next) -> String {
    let (Next::Frames(frames) | Next::Lagged(frames)) = next else { panic!("closed") };
    String::from_utf8(frames.to_vec()).unwrap()
}

/// The first line that begins so.
fn line(text: &str, prefix: &str) -> String {
    let line = text.lines().find_map(|line| line.strip_prefix(prefix));
    line.unwrap_or_else(|| panic!("no {prefix} in {text}")).to_owned()
}

/// The next item, within five seconds.
async fn soon(subscription: &mut Subscription) -> Next {
    timeout(Duration::from_secs(5), subscription.next()).await.unwrap()
}

/// Whether nothing is there now.
async fn silent(subscription: &mut Subscription) -> bool {
    timeout(Duration::ZERO, subscription.next()).await.is_err()
}

#[tokio::test]
async fn a_watcher_that_waits_is_woken_by_what_happens() {
    let log = log();
    let mut watcher = log.subscribe(Form::Named, None);
    let waiting = tokio::spawn(async move { soon(&mut watcher).await });
    tokio::task::yield_now().await;
    log.append(&left("p9"));
    let text = text(waiting.await.unwrap());
    assert!(text.starts_with("event: participant.left\ndata: {\"type\":\"participant.left\","));
}

#[tokio::test]
async fn a_watcher_gets_only_what_comes_after_it_began() {
    let log = log();
    log.append(&left("before"));
    let mut watcher = log.subscribe(Form::Messages, None);
    assert!(silent(&mut watcher).await);
    log.append(&left("after"));
    assert!(text(soon(&mut watcher).await).contains("\"after\""));
    assert!(silent(&mut watcher).await);
}

#[tokio::test]
async fn a_watcher_that_comes_back_with_the_last_id_gets_the_unseen_events() {
    let log = log();
    let mut watcher = log.subscribe(Form::Messages, None);
    log.append(&left("one"));
    let id = line(&text(soon(&mut watcher).await), "id: ").parse().unwrap();
    drop(watcher);
    log.append(&left("two"));
    log.append(&left("three"));
    let text = text(soon(&mut log.subscribe(Form::NamedWithIds, Some(id))).await);
    assert!(!text.contains("\"one\"") && text.contains("\"two\"") && text.contains("\"three\""));
}

#[tokio::test]
async fn a_watcher_from_before_a_restart_gets_a_comment_and_the_kept_events() {
    let log = log();
    log.append(&left("kept"));
    for stale in [0, 5, (NOW - 1) << 20, u64::MAX] {
        let mut watcher = log.subscribe(Form::Messages, Some(stale));
        assert!(text(soon(&mut watcher).await).starts_with(": some events were missed"));
        assert!(text(soon(&mut watcher).await).contains("\"kept\""));
        assert!(silent(&mut watcher).await);
    }
}

#[tokio::test]
async fn a_watcher_that_is_too_slow_gets_a_last_frame() {
    for (form, last) in [
        (Form::Messages, "data: {\"type\":\"room:error\",\"error\":\""),
        (Form::Named, ": you read too slowly"),
        (Form::NamedWithIds, ": you read too slowly"),
    ] {
        let log = log();
        let mut slow = log.subscribe(form, None);
        let mut quick = log.subscribe(form, None);
        for number in 0..Bounds::ROOM.events + 1 {
            log.append(&left(&number.to_string()));
            assert!(text(soon(&mut quick).await).contains(&format!("\"{number}\"")));
        }
        let lagged = soon(&mut slow).await;
        assert!(matches!(lagged, Next::Lagged(_)));
        let text = text(lagged);
        assert!(
            text.starts_with(last) && text.ends_with("\n\n") && !text.contains("id:"),
            "{text}"
        );
        assert_eq!(soon(&mut slow).await, Next::Closed);
        assert!(silent(&mut quick).await);
    }
}

#[test]
fn the_last_message_for_a_slow_watcher_is_one_of_the_specs() {
    let frame = text(Next::Lagged(Form::Messages.lagged()));
    let message = serde_json::from_str::<ServerMessage>(&line(&frame, "data: ")).unwrap();
    assert!(matches!(message, ServerMessage::RoomError(_)));
}

#[tokio::test]
async fn closing_ends_every_subscription_after_its_last_frames() {
    let log = log();
    let mut waiting = log.subscribe(Form::Named, None);
    let mut behind = log.subscribe(Form::Named, None);
    assert!(silent(&mut waiting).await);
    let waiting = tokio::spawn(async move { (soon(&mut waiting).await, soon(&mut waiting).await) });
    let event = RoomEvent::RoomClosed(RoomClosed { reason: "enough".to_owned() });
    log.append(&Announcement::event(event).encode(NOW, "A"));
    log.close();
    let (last, end) = waiting.await.unwrap();
    assert!(text(last).contains("enough"));
    assert_eq!(end, Next::Closed);
    assert!(text(soon(&mut behind).await).contains("enough"));
    assert_eq!(soon(&mut behind).await, Next::Closed);
    log.append(&left("late"));
    assert_eq!(soon(&mut behind).await, Next::Closed);
    assert_eq!(soon(&mut log.subscribe(Form::Named, None)).await, Next::Closed);
}

#[tokio::test]
async fn a_watcher_that_leaves_leaves_nothing_behind() {
    let log = log();
    let watchers = (0..1000).map(|_| log.subscribe(Form::Named, None)).collect::<Vec<_>>();
    assert_eq!(log.watchers(), 1000);
    drop(watchers);
    assert_eq!(log.watchers(), 0);
    for _ in 0..1000 {
        assert!(silent(&mut log.subscribe(Form::Messages, None)).await);
    }
    assert_eq!(log.watchers(), 0);
    assert_eq!(Arc::strong_count(&log), 1);
}

#[tokio::test]
async fn stock_watchers_are_not_woken_for_tokens() {
    let log = log();
    let mut stock = log.subscribe(Form::Named, None);
    let mut ours = log.subscribe(Form::NamedWithIds, None);
    assert!(silent(&mut stock).await && silent(&mut ours).await);
    log.append(&token());
    let mut state = log.lock();
    let waiting = |state: &mut LogState, form: Form| {
        let due = Form::ALL.map(|other| other == form);
        state.watchers.take(due).len()
    };
    assert_eq!(waiting(&mut state, Form::Named), 1);
    assert_eq!(waiting(&mut state, Form::NamedWithIds), 0);
}

#[tokio::test]
async fn a_watcher_of_all_rooms_gets_the_messages_of_rooms_it_may_see() {
    let all = Log::new(Bounds::ALL_ROOMS, NOW);
    let source = |id: &str, public| Arc::new(Source::new(id.into(), public, Some("k-1".into())));
    let mut everybody = all.subscribe_where(Form::Messages, None, |source| {
        if source.is_public() { Sight::All } else { Sight::Nothing }
    });
    let mut owner = all.subscribe_where(Form::Messages, None, |source| {
        let is_own = source.owner().is_some_and(|owner| owner.as_str() == "k-1");
        if is_own { Sight::All } else { Sight::Nothing }
    });
    all.append_from(&left("hidden"), &source("a", false));
    all.append_from(&left("shown"), &source("b", true));
    all.append_from(&without_message(), &source("b", true));
    let text_of_all = text(soon(&mut owner).await);
    assert!(text_of_all.contains("hidden") && text_of_all.contains("shown"));
    assert!(!text_of_all.contains("event: "));
    let text_of_public = text(soon(&mut everybody).await);
    assert!(!text_of_public.contains("hidden") && text_of_public.contains("shown"));
    assert!(silent(&mut owner).await && silent(&mut everybody).await);
}

#[test]
fn events_are_announced_without_a_runtime_too() {
    let log = log();
    let watchers =
        (0..WOKEN_AT_ONCE * 2).map(|_| log.subscribe(Form::Named, None)).collect::<Vec<_>>();
    log.append(&left("p"));
    log.close();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        for mut watcher in watchers {
            assert!(text(soon(&mut watcher).await).contains("\"p\""));
        }
    });
}

/// Many tell, many watch, on several threads: each watcher sees each event once and in order, or is
/// told that it missed some; none waits for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost() {
    for watchers in [3, WOKEN_AT_ONCE * 4] {
        let log = Log::new(Bounds { events: 100_000, bytes: usize::MAX }, NOW);
        let mut reading = JoinSet::new();
        for number in 0..watchers {
            let mut watcher = log.subscribe(Form::ALL[number % Form::COUNT], None);
            reading.spawn(async move { read_to_the_end(&mut watcher).await });
        }
        let mut telling = JoinSet::new();
        for teller in 0..4 {
            let log = Arc::clone(&log);
            telling.spawn(async move {
                for number in 0..200 {
                    log.append(&left(&format!("{teller}-{number}")));
                    tokio::task::yield_now().await;
                }
            });
        }
        telling.join_all().await;
        log.close();
        let all = timeout(Duration::from_secs(20), reading.join_all()).await.unwrap();
        assert!(all.iter().all(|seen| seen.len() == 800 && *seen == all[0]));
        assert_eq!(all[0].iter().collect::<BTreeSet<_>>().len(), 800);
        assert_eq!(log.watchers(), 0);
    }
}

async fn read_to_the_end(watcher: &mut Subscription) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        match watcher.next().await {
            Next::Frames(frames) => {
                let text = std::str::from_utf8(&frames).unwrap();
                let ids = text.split("\"participantId\":\"").skip(1);
                seen.extend(ids.map(|rest| rest[..rest.find('"').unwrap()].to_owned()));
            }
            Next::Lagged(_) => panic!("nobody can be too slow here"),
            Next::Closed => return seen,
        }
    }
}

#[tokio::test]
async fn five_thousand_watchers_of_one_room_get_an_event_at_once() {
    let log = log();
    let mut reading = JoinSet::new();
    for _ in 0..5000 {
        let mut watcher = log.subscribe(Form::Named, None);
        reading.spawn(async move { soon(&mut watcher).await });
    }
    tokio::task::yield_now().await;
    log.append(&left("p9"));
    let all = reading.join_all().await;
    let (Next::Frames(first), Next::Frames(last)) = (&all[0], &all[4999]) else {
        panic!("{all:?}")
    };
    assert_eq!(first.as_ptr(), last.as_ptr(), "the frame was copied");
    assert!(size_of::<Subscription>() <= 64, "{}", size_of::<Subscription>());
}
