//! The end of a session: nothing is left after a kill, and everything is on the disk after an end.

use std::{
    fs,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use protocol::workspace::{ServerMessage, SessionId, SessionMode};
use session::terminal::{log::Gather, size::Size};
use store::WorkspaceStore as _;
use tokio::time;

use super::bare::{Bare, SlowStarter, facts};
use crate::{
    refusal::Refusal,
    sessions::{
        Facts, Feed, NewEngine, NewSession,
        clock::{AlarmTarget as _, now},
        life::facts::KIND,
        session::Session,
    },
    testing::soon,
};

#[tokio::test]
async fn a_session_that_is_killed_as_it_starts_leaves_no_program() {
    let starter = Arc::new(SlowStarter::default());
    let bare = Bare::with_starter(Arc::downgrade(&starter), |_| {});
    let engine = NewEngine::Shell { command: "cat".to_owned(), args: None };
    let new = NewSession::new(engine, "/".to_owned());
    let (id, sessions) = (SessionId::from_random(rand::random()), bare.sessions.clone());
    let making = tokio::spawn(async move { sessions.create_as(id, new).await });
    soon(starter.begun.notified()).await;
    bare.sessions.kill(id).await.unwrap();
    starter.goes_on.notify_one();
    let refused = soon(making).await.unwrap().unwrap_err();
    assert!(refused.to_string().contains("killed"), "{refused}");
    assert!(starter.heard.is_stopped.load(Ordering::Relaxed));
    assert!(!bare.sessions.has(id) && bare.store.load_facts(KIND).unwrap().is_empty());
}

#[tokio::test]
async fn a_session_is_killed_once_and_does_not_move_from_then_on() {
    let bare = Bare::new();
    let (session, ..) = bare.session(SessionMode::Sdk);
    session.lock().life.is_leaving = true;
    session.lock().life.begin_removal().unwrap_err();
    assert!(!session.lock().life.is_removed);
    session.lock().life.is_leaving = false;
    session.lock().life.begin_removal().unwrap();
    let again = session.lock().life.begin_removal();
    assert!(matches!(again, Err(Refusal::UnknownSession(id)) if id == session.id));
    let packed = bare.sessions.pack(session.id, true).await;
    assert!(matches!(packed, Err(Refusal::UnknownSession(id)) if id == session.id));
}

#[tokio::test]
async fn a_killed_session_does_not_come_back_though_its_files_cannot_be_removed() {
    let bare = Bare::new();
    let (session, ..) = bare.session(SessionMode::Sdk);
    let shared = &bare.sessions.0.shared;
    shared.keeper.keep(&session).await.unwrap();
    // No directory, so it cannot be removed as one.
    let history = shared.history_dir(session.id);
    fs::create_dir_all(history.parent().unwrap()).unwrap();
    fs::write(&history, "").unwrap();
    let private = private(&bare, session.id);
    bare.sessions.kill(session.id).await.unwrap_err();
    assert!(bare.store.load_facts(KIND).unwrap().is_empty());
    assert!(!private.exists());
}

#[tokio::test]
async fn a_session_that_has_left_leaves_no_private_files_though_it_had_no_history() {
    let bare = Bare::new();
    let id = SessionId::from_random(rand::random());
    let private = private(&bare, id);
    bare.sessions.drop_left(id).await.unwrap();
    assert!(!private.exists());
}

/// Makes the directory of an agent's private files.
fn private(bare: &Bare, id: SessionId) -> std::path::PathBuf {
    let dir = bare.dir.path().join("agents").join(id.to_string());
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[tokio::test]
async fn of_a_hidden_session_that_makes_room_only_its_viewers_are_told() {
    let bare = Bare::with(|settings| settings.max_sessions = 1);
    let mut events = bare.sessions.0.shared.events.subscribe();
    let hidden = Facts { hidden: true, ..facts(SessionMode::Pty) };
    let hidden = bare.sessions.add(hidden, Size::DEFAULT).unwrap();
    Feed::new(&hidden).ended("it has ended".to_owned(), Some(0));
    bare.sessions.add(facts(SessionMode::Pty), Size::DEFAULT).unwrap();
    let killed = loop {
        let event = soon(events.recv()).await.unwrap();
        if matches!(event.message, ServerMessage::SessionKilled(_)) {
            break event;
        }
    };
    assert_eq!(killed.only_viewers_of, Some(hidden.id));
}

/// The output of a session on the disk.
fn on_disk(session: &Session) -> String {
    let mut gather = Gather::new(u64::MAX, 1024);
    session.history.lock().gather(&mut gather).unwrap();
    gather.finish().text()
}

#[tokio::test]
async fn a_character_that_is_cut_by_the_end_is_on_the_disk_and_leaves_memory() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    feed.output(Bytes::from_static(b"a\xc3"));
    bare.sessions.0.shared.writer.flush().await;
    feed.ended("it has ended".to_owned(), Some(0));
    bare.sessions.0.shared.writer.flush().await;
    assert_eq!(on_disk(&session), "a\u{fffd}");
    assert!(session.lock().output.may_unload());
}

#[tokio::test(start_paused = true)]
async fn a_character_without_an_end_is_on_the_disk_after_a_while() {
    let bare = Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    feed.output(Bytes::from_static(b"a\xc3"));
    bare.sessions.0.shared.writer.flush().await;
    time::advance(time::Duration::from_secs(1)).await;
    session.clone().alarm_rang(now());
    bare.sessions.0.shared.writer.flush().await;
    assert_eq!(on_disk(&session), "a\u{fffd}");
}
