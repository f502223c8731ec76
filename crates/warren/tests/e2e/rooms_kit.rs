//! The kit of the tests of rooms: a server with a room, and the shapes of answers.

use serde_json::{Value, json};
use testkit::{Client, Daemon, FakeParticipant, Response, Room, TunnelAsk, chat::completion};

use crate::common::{ask_for, post, serve};

/// A room without a password.
pub(crate) async fn open_room(daemon: &Daemon) -> Room {
    Room::make(&daemon.client(), &json!({"name": "friends"})).await
}

/// A server with defaults, a client of it, and a room without a password.
pub(crate) async fn with_room() -> (Daemon, Client, Room) {
    let daemon = serve().start().await;
    let room = open_room(&daemon).await;
    let client = daemon.client();
    (daemon, client, room)
}

/// Answers a request with a chat that says `text`.
pub(crate) async fn say(participant: &mut FakeParticipant, ask: &TunnelAsk, text: &str) {
    participant.answer(ask, 200, &completion(text)).await;
}

/// The data of a good answer of the plane.
#[track_caller]
pub(crate) fn data(response: &Response, status: u16) -> Value {
    let body = response.json();
    assert_eq!(response.status, status, "{body}");
    assert_envelope(&body, "data");
    body["data"].clone()
}

/// The error of a refusal of the plane.
#[track_caller]
pub(crate) fn refused(response: &Response, status: u16, code: &str) -> Value {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.header("content-type"), Some("application/json"));
    let body = response.json();
    assert_envelope(&body, "error");
    assert_eq!(body["error"]["code"], code, "{body}");
    assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    body["error"].clone()
}

#[track_caller]
fn assert_envelope(body: &Value, holds: &str) {
    let fields = body.as_object().expect("an object");
    assert_eq!(fields.keys().map(String::as_str).collect::<Vec<_>>(), [holds, "meta"], "{body}");
    let id = body["meta"]["requestId"].as_str().expect("an id");
    assert_eq!((id.len(), id.split('-').count()), (36, 5), "{id}");
}

/// A message in answer to one.
#[track_caller]
pub(crate) fn message(response: &Response, status: u16, kind: &str) -> Value {
    let body = response.json();
    assert_eq!((response.status, body["type"].as_str()), (status, Some(kind)), "{body}");
    body
}

/// Asks a participant for a chat, which it answers.
pub(crate) async fn assert_answers(
    daemon: &Daemon,
    room: &Room,
    participant: &mut FakeParticipant,
) {
    let asked = post(&daemon.client(), room.chat(), ask_for("*", false));
    let ask = participant.expect_request().await;
    say(participant, &ask, "good").await;
    let answer = asked.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}
