//! Streams of what happens in rooms.

use std::sync::Arc;

use access::{Moment, NewKey};
use axum::body::Body;
use http::Response;
use protocol::room::{RoomEvent, ServerMessage, event::ParticipantRef, message::ParticipantLeft};
use rooms::{NewRoom, Room};
use serde_json::{Value, json};

use crate::{
    kit::{Kit, next, text},
    room_kit::{answer_of, get, now, with_bearer},
    rooms_plane::from_afar,
};

async fn watch(kit: &Kit, path: &str) -> Body {
    let response = kit.send(get(path)).await;
    assert_eq!(response.status(), 200, "{path}");
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    response.into_body()
}

/// The next frames.
async fn frames(body: &mut Body) -> String {
    String::from_utf8(next(body).await.expect("it ended").unwrap().to_vec()).unwrap()
}

/// Somebody leaves.
fn leaves(room: &Room, id: &str) {
    let participant_id = id.to_owned();
    let event =
        RoomEvent::ParticipantLeft(ParticipantRef { participant_id: participant_id.clone() });
    let message = ServerMessage::ParticipantLeft(ParticipantLeft { participant_id });
    room.tell(Some(event), Some(message), now());
}

fn events_of(room: &Room) -> String {
    format!("/rooms/{}/events", room.spoken_code())
}

fn public(kit: &Kit, password: Option<&str>) -> Arc<Room> {
    let password = password.map(Into::into);
    let new = NewRoom { name: "p".to_owned(), password, public: true, ..NewRoom::default() };
    kit.rooms.create(new, now()).unwrap().room
}

#[tokio::test(start_paused = true)]
async fn a_room_tells_the_specs_messages_as_unnamed_events() {
    let kit = Kit::new();
    let room = kit.room(None);
    let mut body = watch(&kit, &events_of(&room)).await;
    leaves(&room, "p1");
    let frame = frames(&mut body).await;
    let (id, data) = frame.split_once('\n').unwrap();
    assert!(id.strip_prefix("id: ").unwrap().parse::<u64>().is_ok(), "{frame}");
    let message: Value =
        serde_json::from_str(data.strip_prefix("data: ").unwrap().trim_end()).unwrap();
    assert_eq!(message, json!({ "type": "room:participant-left", "participantId": "p1" }));
    assert!(frame.ends_with("\n\n"));
    assert_eq!(frames(&mut body).await, ": ping\n\n", "and that it lives, when nothing happens");
}

#[tokio::test(start_paused = true)]
async fn stock_watchers_get_named_events_and_first_that_they_are_connected() {
    let kit = Kit::new();
    let room = kit.room(None);
    let mut body = watch(&kit, &format!("/v1{}", events_of(&room))).await;
    let first = frames(&mut body).await;
    let data = first.strip_prefix("event: connected\ndata: ").unwrap().trim_end();
    let connected: Value = serde_json::from_str(data).unwrap();
    assert_eq!(
        (&connected["type"], &connected["roomCode"]),
        (&json!("connected"), &json!(room.short_code()))
    );
    assert!(connected["data"]["clientId"].is_string() && connected["timestamp"].is_u64());
    leaves(&room, "p1");
    let frame = frames(&mut body).await;
    assert!(frame.starts_with("event: participant.left\ndata: {\"type\":\"participant.left\","));
    let mut ours = watch(&kit, &format!("/v1{}?ids=true", events_of(&room))).await;
    let first = frames(&mut ours).await;
    let id = first.strip_prefix("id: ").unwrap().lines().next().unwrap();
    assert!(id.parse::<u64>().is_ok() && first.contains("\nevent: connected\n"), "{first}");
    leaves(&room, "p2");
    assert!(frames(&mut ours).await.starts_with("id: "));
}

#[tokio::test(start_paused = true)]
async fn a_returning_watcher_gets_the_missed_events() {
    let kit = Kit::new();
    let room = kit.room(None);
    let mut body = watch(&kit, &events_of(&room)).await;
    leaves(&room, "p1");
    let seen = frames(&mut body).await;
    let id = seen.strip_prefix("id: ").unwrap().split('\n').next().unwrap();
    drop(body);
    leaves(&room, "p2");
    for query in ["lastEventId", "after"] {
        let mut resumed = watch(&kit, &format!("{}?{query}={id}", events_of(&room))).await;
        assert!(frames(&mut resumed).await.contains("p2"), "{query}");
    }
    let mut request = get(&events_of(&room));
    request.headers_mut().insert("last-event-id", id.parse().unwrap());
    let mut resumed = kit.send(request).await.into_body();
    assert!(frames(&mut resumed).await.contains("p2"));
    let mut stale = watch(&kit, &format!("{}?after=1", events_of(&room))).await;
    let mut all = frames(&mut stale).await;
    while !all.contains("p2") {
        all.push_str(&frames(&mut stale).await);
    }
    assert!(all.contains("p1"), "all that is kept: {all}");
    for nonsense in ["nonsense", "99999999999999999999"] {
        drop(watch(&kit, &format!("{}?after={nonsense}", events_of(&room))).await);
    }
}

#[tokio::test(start_paused = true)]
async fn watchers_of_all_rooms_see_those_that_they_may() {
    let kit = Kit::new();
    let (hidden, open) = (kit.room(None), public(&kit, None));
    let locked = public(&kit, Some("sesame"));
    let mut here = watch(&kit, "/events?role=tui").await;
    let mut far = kit.send(from_afar(get("/events?role=tui"))).await.into_body();
    leaves(&hidden, "in-hidden");
    leaves(&locked, "in-locked");
    leaves(&open, "in-open");
    let mut all = String::new();
    while !all.contains("in-open") {
        all.push_str(&frames(&mut here).await);
    }
    assert!(all.contains("in-hidden") && all.contains("in-locked"), "local ones see all: {all}");
    let seen = frames(&mut far).await;
    assert!(seen.contains("in-open"), "{seen}");
    assert!(!seen.contains("in-hidden") && !seen.contains("in-locked"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn a_host_watches_its_room_by_code_or_id() {
    let kit = Kit::new();
    let (room, other) = (kit.room(None), kit.room(None));
    for name in [room.id().as_str(), room.short_code(), room.spoken_code()] {
        let mut body = watch(&kit, &format!("/events?role=host&room={name}")).await;
        leaves(&other, "elsewhere");
        leaves(&room, "here");
        let seen = frames(&mut body).await;
        assert!(seen.contains("here") && !seen.contains("elsewhere"), "{seen}");
    }
    for (path, status) in [
        ("/events?role=host", 400),
        ("/events?role=king", 400),
        ("/events?role=host&room=ZZZZZZ", 404),
    ] {
        let (actual, error) = kit.answer(get(path)).await;
        assert_eq!((actual, &error["type"]), (status, &json!("room:error")), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_password_guards_what_happens() {
    let kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let plain = events_of(&room);
    let host = format!("/events?role=host&room={}", room.id());
    for path in [plain.clone(), format!("/v1{plain}"), host] {
        assert_eq!(kit.answer(get(&path)).await.0, 401, "{path}");
        assert_eq!(kit.send(with_bearer(get(&path), "sesame")).await.status(), 200);
        let mark = if path.contains('?') { '&' } else { '?' };
        assert_eq!(kit.send(get(&format!("{path}{mark}password=sesame"))).await.status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_room_is_told_in_the_form_of_each_path() {
    let kit = Kit::new();
    assert_eq!(
        kit.answer(get("/rooms/ZZZZZZ/events")).await,
        (404, json!({ "error": "Room not found" }))
    );
    let (status, envelope) = kit.answer(get("/v1/rooms/ZZZZZZ/events")).await;
    assert_eq!((status, &envelope["error"]["code"]), (404, &json!("ROOM_NOT_FOUND")));
}

/// Whether a stream ends by itself.
async fn ends(response: Response<Body>) -> bool {
    tokio::time::timeout(std::time::Duration::from_secs(5), text(response)).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn streams_end_with_their_room_and_when_the_server_drains() {
    let kit = Kit::new();
    let (one, other) = (kit.room(None), kit.room(None));
    let closed = kit.send(get(&events_of(&one))).await;
    kit.rooms.close(one.id(), "the test closed it").unwrap();
    let last = text(closed).await;
    assert!(last.contains("room:error") && last.contains("the test closed it"), "{last}");
    let paths = [events_of(&other), format!("/v1{}", events_of(&other)), "/events".to_owned()];
    for path in &paths {
        assert!(!ends(kit.send(get(path)).await).await, "{path}");
    }
    let mut open = Vec::new();
    for path in &paths {
        open.push(kit.send(get(path)).await);
    }
    kit.api.start_draining();
    for response in open {
        assert!(ends(response).await, "a stop would wait for it");
    }
}

#[tokio::test(start_paused = true)]
async fn there_are_only_so_many_places_in_a_room() {
    let kit = Kit::new();
    let (room, other) = (kit.room(None), kit.room(None));
    let path = events_of(&room);
    let mut watching = Vec::new();
    for _ in 0..5_000 {
        watching.push(kit.send(get(&path)).await);
    }
    let response = kit.send(get(&path)).await;
    assert!(response.headers().contains_key("retry-after"));
    assert_eq!(answer_of(response).await.0, 503);
    assert_eq!(kit.send(get(&events_of(&other))).await.status(), 200);
    watching.pop();
    assert_eq!(kit.send(get(&path)).await.status(), 200, "the place of one who left is free");
}

#[tokio::test(start_paused = true)]
async fn who_watches_all_rooms_sees_no_more_once_the_key_or_the_page_session_has_ended() {
    let kit = Kit::new();
    let scopes = vec![base::KeyScope::Rooms, base::KeyScope::Admin];
    let new = NewKey { name: "n".to_owned(), scopes, ..NewKey::default() };
    let (key, text) = kit.keys.create(new, Moment::now()).unwrap();
    let (sessions, holder) =
        (kit.keys.page_sessions(), kit.keys.holder(text.expose(), Moment::now()).unwrap());
    let begin = || sessions.create(&holder, "", None, Moment::now()).unwrap();
    let [one, other] = [begin(), begin()];
    let (ending, one, other) = (one.session, one.text, other.text);
    let watch = async |credential: &str| {
        let mut request = from_afar(get("/events"));
        request.headers_mut().insert("x-api-key", credential.parse().unwrap());
        kit.send(request).await
    };
    let [by_one, by_other] = [watch(one.expose()).await, watch(other.expose()).await];
    let (by_key, by_token) = (watch(text.expose()).await, watch("admin").await);
    sessions.revoke(ending.id().as_str()).unwrap();
    assert!(ends(by_one).await);
    let mut going_on = by_key.into_body();
    leaves(&kit.room(None), "p1");
    while !frames(&mut going_on).await.contains("p1") {}
    kit.keys.revoke(&key.id, Moment::now()).unwrap();
    assert!(ends(Response::new(going_on)).await && ends(by_other).await);
    assert!(!ends(by_token).await, "the administrator's token has no end");
}
