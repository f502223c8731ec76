//! A program's questions to its terminal: one answer for each.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use protocol::workspace::{SessionId, SessionMode};
use session::terminal::query::PATIENCE;
use tokio::time;

use super::{
    bare::{Bare, EngineCalls},
    seen::Watcher,
};
use crate::{identity::ClientId, sessions::Feed};

/// A terminal's session without a process.
fn terminal() -> (Bare, SessionId, Feed, Arc<EngineCalls>) {
    let bare = Bare::new();
    let (session, feed, heard) = bare.session(SessionMode::Pty);
    (bare, session.id, feed, heard)
}

/// A client with a window that has seen all output.
async fn client(bare: &Bare, id: SessionId, client: u64, after: Option<u64>) -> Watcher {
    let watcher = Watcher::begun(bare.attach(id, client, after)).await;
    bare.sessions.resize(id, ClientId(client), 80, 24, true).unwrap();
    watcher
}

fn type_in(bare: &Bare, id: SessionId, client: u64, text: &'static str) {
    bare.sessions.type_in(id, ClientId(client), Bytes::from_static(text.as_bytes()), None).unwrap();
}

/// The program's input.
fn read(heard: &EngineCalls) -> String {
    let typed = heard.typed.lock().unwrap();
    typed.iter().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect()
}

fn output(feed: &Feed, text: &'static str) {
    feed.output(Bytes::from_static(text.as_bytes()));
}

#[tokio::test]
async fn with_nobody_attached_the_screen_answers_from_where_it_was_asked() {
    let (_bare, _, feed, heard) = terminal();
    output(&feed, "abc\x1b[6nd\r\n\x1b[6n");
    assert_eq!(read(&heard), "\x1b[1;4R\x1b[2;1R");
    output(&feed, "\x1b[");
    output(&feed, "5nx\x1b[?u\x1b[c");
    assert_eq!(read(&heard), "\x1b[1;4R\x1b[2;1R\x1b[0n\x1b[?0u\x1b[?62;6;22c");
}

#[tokio::test]
async fn of_two_terminals_the_one_in_control_answers_and_the_other_is_not_heard() {
    let (bare, id, feed, heard) = terminal();
    let mut one = client(&bare, id, 1, None).await;
    let mut other = client(&bare, id, 2, None).await;
    type_in(&bare, id, 1, "\r");
    output(&feed, "asks\x1b[6n");
    one.until("asks").await;
    other.until("asks").await;
    type_in(&bare, id, 2, "\x1b[9;9R");
    type_in(&bare, id, 1, "\x1b[1;5R");
    assert_eq!(read(&heard), "\r\x1b[1;5R");
    // An answer of its terminal gives a client no control.
    output(&feed, " again\x1b[6n");
    one.until("again").await;
    type_in(&bare, id, 1, "\x1b[1;11R");
    assert_eq!(read(&heard), "\r\x1b[1;5R\x1b[1;11R");
}

#[tokio::test]
async fn a_client_that_comes_back_answers_nothing_that_it_is_sent_again() {
    let (bare, id, feed, heard) = terminal();
    output(&feed, "before");
    output(&feed, "asks\x1b[6n");
    let mut back = client(&bare, id, 1, Some(1)).await;
    back.until("asks").await;
    type_in(&bare, id, 1, "\x1b[9;9Rls\r");
    assert_eq!(read(&heard), "\x1b[1;11Rls\r");
}

#[tokio::test]
async fn a_client_without_a_window_is_no_terminal_and_is_not_waited_for() {
    let (bare, id, feed, heard) = terminal();
    let _reader = Watcher::begun(bare.attach(id, 1, None)).await;
    output(&feed, "\x1b[5n");
    assert_eq!(read(&heard), "\x1b[0n");
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_is_silent_or_leaves_is_answered_for() {
    let (bare, id, feed, heard) = terminal();
    let mut silent = client(&bare, id, 1, None).await;
    output(&feed, "ab\x1b[?u\x1b[6n");
    silent.until("ab").await;
    output(&feed, "\r\n");
    assert_eq!(read(&heard), "");
    time::sleep(PATIENCE + Duration::from_millis(10)).await;
    assert_eq!(read(&heard), "\x1b[1;3R");
    output(&feed, "\x1b[c");
    drop(silent);
    time::sleep(Duration::from_millis(10)).await;
    assert_eq!(read(&heard), "\x1b[1;3R\x1b[?62;6;22c");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_looks_like_the_beginning_of_an_answer_is_typed_without_another_key() {
    let (bare, id, feed, heard) = terminal();
    let mut one = client(&bare, id, 1, None).await;
    output(&feed, "asks\x1b[?u");
    one.until("asks").await;
    // Alt and `[`.
    type_in(&bare, id, 1, "\x1b[");
    assert_eq!(read(&heard), "");
    time::sleep(PATIENCE + Duration::from_millis(10)).await;
    assert_eq!(read(&heard), "\x1b[");
}

#[tokio::test]
async fn a_flood_of_questions_gets_a_bounded_number_of_answers() {
    let (bare, id, feed, heard) = terminal();
    feed.output(Bytes::from("\x1b[5n".repeat(10_000)));
    let most = super::super::session::MOST_QUERIES;
    assert_eq!(heard.typed.lock().unwrap().len(), most);
    output(&feed, "x\x1b[5n");
    assert_eq!(heard.typed.lock().unwrap().len(), most + 1);
    assert_eq!(bare.sessions.info(id).unwrap().id, id);
}
