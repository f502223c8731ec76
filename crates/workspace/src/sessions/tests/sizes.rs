//! A terminal that gets another size while several clients view it.

use std::sync::Arc;

use protocol::workspace::{ServerMessage, SessionMode};
use session::terminal::size::DEBOUNCE;
use tokio::time;

use super::{bare::Bare, seen::Watcher};
use crate::{
    identity::ClientId,
    sessions::{
        clock::{AlarmTarget as _, now},
        session::Session,
    },
};

/// Gives a client a window of this size, and lets the change take effect.
async fn resize(bare: &Bare, session: &Arc<Session>, client: u64, size: (u16, u16)) {
    bare.sessions.resize(session.id, ClientId(client), size.0, size.1, true).unwrap();
    time::advance(DEBOUNCE).await;
    session.clone().alarm_rang(now());
}

fn sizes(seen: &Watcher) -> Vec<(u16, u16)> {
    let size = |message: &ServerMessage| match message {
        ServerMessage::TerminalSize(size) => Some((size.cols, size.rows)),
        _ => None,
    };
    seen.messages.iter().filter_map(size).collect()
}

#[tokio::test(start_paused = true)]
async fn an_onlooker_gets_the_size_and_the_screen_after_all_earlier_output() {
    let bare = Bare::new();
    let (session, feed, heard) = bare.session(SessionMode::Pty);
    let mut one = Watcher::begun(bare.attach(session.id, 1, None)).await;
    let mut other = Watcher::begun(bare.attach(session.id, 2, None)).await;
    // Longer than a row: terminal emulators break such a line in different ways.
    let line = "words that go on ".repeat(9);
    feed.output(line.clone().into());
    resize(&bare, &session, 1, (60, 20)).await;
    one.catch_up().await;
    other.catch_up().await;
    assert_eq!((sizes(&one), one.snapshots), (vec![], 1), "its own window has that size");
    assert_eq!((sizes(&other), other.snapshots), (vec![(60, 20)], 2));
    assert_eq!(other.text, line, "nothing is left out");
    let mut fresh = Watcher::begun(bare.attach(session.id, 3, None)).await;
    fresh.catch_up().await;
    assert_eq!(other.screen.snapshot(), fresh.screen.snapshot());
    assert_eq!(heard.sizes.lock().unwrap().len(), 1);
    feed.output("more".into());
    other.catch_up().await;
    fresh.catch_up().await;
    assert_eq!(other.screen.snapshot(), fresh.screen.snapshot());
}

#[tokio::test(start_paused = true)]
async fn a_refused_size_is_answered_with_the_real_one_and_later_with_its_own() {
    let bare = Bare::new();
    let (session, _feed, heard) = bare.session(SessionMode::Pty);
    let mut one = Watcher::begun(bare.attach(session.id, 1, None)).await;
    resize(&bare, &session, 1, (60, 20)).await;
    bare.sessions.type_in(session.id, ClientId(1), "x".into(), None).unwrap();
    let mut other = Watcher::begun(bare.attach(session.id, 2, None)).await;
    resize(&bare, &session, 2, (100, 30)).await;
    other.catch_up().await;
    assert_eq!((sizes(&other), other.snapshots), (vec![(60, 20)], 2));
    bare.sessions.take_control(session.id, ClientId(2)).unwrap();
    time::advance(DEBOUNCE).await;
    session.clone().alarm_rang(now());
    other.catch_up().await;
    one.catch_up().await;
    assert_eq!(sizes(&other), [(60, 20), (100, 30)]);
    assert_eq!(sizes(&one), [(100, 30)]);
    assert_eq!(heard.sizes.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_viewer_is_told_the_size_and_nothing_is_painted_again() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    feed.output("before".into());
    resize(&bare, &session, 1, (60, 20)).await;
    let mut seen = Watcher::begun(bare.attach(session.id, 2, Some(1))).await;
    seen.catch_up().await;
    assert_eq!((sizes(&seen), seen.snapshots), (vec![(60, 20)], 0));
    let (agent, _, _) = bare.session(SessionMode::Sdk);
    let mut seen = Watcher::begun(bare.attach(agent.id, 1, Some(0))).await;
    seen.catch_up().await;
    assert_eq!(sizes(&seen), [], "an agent has no terminal");
}

#[tokio::test(start_paused = true)]
async fn an_agent_keeps_no_sizes_of_its_windows() {
    let bare = Bare::new();
    let (session, _, heard) = bare.session(SessionMode::Sdk);
    let _seen = Watcher::begun(bare.attach(session.id, 1, None)).await;
    for round in 0..100 {
        resize(&bare, &session, 1, (80 + round % 2, 30)).await;
    }
    assert_eq!(heard.sizes.lock().unwrap().len(), 100);
    assert!(!session.screen.lock().has_many_sizes());
}
