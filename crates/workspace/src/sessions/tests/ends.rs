//! What the end of a session leaves: nothing after a kill, and everything on the disk after an end.

use std::sync::{Arc, atomic::Ordering};

use protocol::workspace::{ServerMessage, SessionId, SessionMode};
use session::terminal::size::Size;
use store::WorkspaceStore as _;

use super::bare::{Bare, SlowStarter, facts};
use crate::{
    refusal::Refusal,
    sessions::{
        Facts, Feed, NewEngine, NewSession,
        life::facts::KIND,
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
