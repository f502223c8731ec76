//! The spec's `llm:request`, and what becomes of it.

use std::sync::Arc;

use axum::body::Body;
use base::Endpoint;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use rooms::{Form, Next, Room, Subscription};
use scheduler::{Assignment, Head};
use serde_json::{Value, json};

use crate::{
    kit::{Kit, head, next, sent, text},
    room_kit::{EVENTS, JSON, Lent, answer_of, with_bearer},
    rooms_messages::{message, refusal},
};

const CHAT: &[Endpoint] = &[Endpoint::ChatCompletions];

fn ask(room: &Room, id: &str, target: &str) -> Request<Body> {
    let body = json!({ "type": "llm:request", "requestId": id, "targetId": target, "prompt": "hi",
        "options": { "temperature": 0.1 } });
    message(&format!("/rooms/{}/messages", room.short_code()), &body)
}

fn with_stream(mut request: Request<Body>) -> Request<Body> {
    request.headers_mut().insert("accept", "text/event-stream".parse().unwrap());
    request
}

fn delta(text: &str) -> Bytes {
    format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n").into()
}

/// Answers a job with `Hel`, `lö`, and this end, cut anywhere, also within a character.
fn answer(mut assignment: Assignment, end: &'static str) {
    let whole = [&delta("Hel")[..], &delta("lö"), end.as_bytes()].concat();
    for piece in whole.chunks(7) {
        assignment.answer.chunk(Bytes::copy_from_slice(piece)).unwrap();
    }
    assignment.answer.end();
}

const DONE: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":9}}\n\n\
    data: [DONE]\n\n";

/// The messages in a text of unnamed events.
fn messages(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// Those of an `llm:request`, as far as the last of them.
async fn watched(subscription: &mut Subscription) -> Vec<Value> {
    let mut seen = Vec::new();
    loop {
        let Next::Frames(frames) = subscription.next().await else { panic!("it ended: {seen:?}") };
        let new = messages(std::str::from_utf8(&frames).unwrap());
        seen.extend(
            new.into_iter().filter(|message| message["type"].as_str().unwrap().starts_with("llm:")),
        );
        let last = seen.last().and_then(|message| message["type"].as_str());
        if matches!(last, Some("llm:complete" | "llm:error")) {
            return seen;
        }
    }
}

async fn begun(kit: &mut Kit, request: Request<Body>) -> (Response<Body>, Assignment) {
    let response = kit.send(request).await;
    let mut assignment = kit.assigned().await;
    assignment.answer.head(head(&[EVENTS])).unwrap();
    (response, assignment)
}

fn room_with_p1(kit: &Kit) -> (Arc<Room>, Lent) {
    let room = kit.room(None);
    let lent = kit.lends(&room, "p1", &["m1"], CHAT);
    (room, lent)
}

#[tokio::test(start_paused = true)]
async fn a_request_is_accepted_and_its_tokens_are_told_to_the_room() {
    let mut kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let mut watching = room.subscribe(Form::Messages, None);
    let (response, assignment) = begun(&mut kit, ask(&room, "r1", "model:m1")).await;
    let (status, accepted) = answer_of(response).await;
    assert_eq!((status, accepted), (202, json!({ "type": "llm:accepted", "requestId": "r1" })));
    let request = sent(&assignment);
    assert_eq!(request["messages"], json!([{ "role": "user", "content": "hi" }]));
    assert_eq!((&request["stream"], &request["temperature"]), (&json!(true), &json!(0.1)));
    answer(assignment, DONE);
    let seen = watched(&mut watching).await;
    let token = |text: &str, seq: u64| {
        json!({ "type": "llm:token", "requestId": "r1", "participantId": "p1", "token": text,
            "seq": seq })
    };
    assert_eq!(seen[..2], [token("Hel", 0), token("lö", 1)]);
    let [_, _, complete] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(complete["requestId"], "r1");
    assert_eq!(
        (&complete["participantId"], &complete["metrics"]["tokens"]),
        (&json!("p1"), &json!(9))
    );
    for time in ["latencyFirstTokenMs", "durationMs", "tokensPerSecond"] {
        assert!(complete["metrics"][time].is_number(), "{complete}");
    }
    assert!(kit.scheduler.is_idle());
    assert_eq!(kit.answer(ask(&room, "r1", "*")).await.0, 202, "its id is free again");
}

#[tokio::test(start_paused = true)]
async fn an_asker_gets_a_stream_of_its_own_that_ends() {
    let mut kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let mut watching = room.subscribe(Form::Messages, None);
    let (response, assignment) = begun(&mut kit, with_stream(ask(&room, "r1", "p1"))).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    answer(assignment, "data: [DONE]\n\n");
    let own = messages(&text(response).await);
    assert_eq!(own.len(), 3, "{own:?}");
    assert_eq!(own[2]["type"], "llm:complete");
    assert_eq!(own[2]["metrics"]["tokens"], 2, "counted, where the backend tells nothing");
    assert_eq!(watched(&mut watching).await, own, "the room is told the same");
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_named_events_are_only_for_those_who_ask_for_ids() {
    let mut kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let mut ours = room.subscribe(Form::NamedWithIds, None);
    let mut stock = room.subscribe(Form::Named, None);
    let (response, assignment) = begun(&mut kit, with_stream(ask(&room, "r1", "p1"))).await;
    answer(assignment, DONE);
    text(response).await;
    let mut names = String::new();
    while !names.contains("llm.complete") {
        let Next::Frames(frames) = ours.next().await else { panic!("{names}") };
        names.push_str(std::str::from_utf8(&frames).unwrap());
    }
    assert_eq!(names.matches("event: llm.token\n").count(), 2, "{names}");
    let Next::Frames(frames) = stock.next().await else { panic!("it ended") };
    let stock = String::from_utf8(frames.to_vec()).unwrap();
    assert!(stock.contains("event: llm.request\n") && !stock.contains("llm.token"), "{stock}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_its_stream_cancels_the_request() {
    let mut kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let mut watching = room.subscribe(Form::Messages, None);
    let (response, mut assignment) = begun(&mut kit, with_stream(ask(&room, "r1", "p1"))).await;
    assignment.answer.chunk(delta("Hel")).unwrap();
    let mut body = response.into_body();
    assert!(next(&mut body).await.unwrap().unwrap().starts_with(b"data: {"));
    drop(body);
    assert!(assignment.answer.chunk(delta("lo")).is_err(), "the provider is told");
    let seen = watched(&mut watching).await;
    let error = json!({ "type": "llm:error", "requestId": "r1", "participantId": "p1",
        "error": "the client left" });
    assert_eq!(seen.last(), Some(&error));
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_as_errors() {
    let mut kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let stream = |id: &str| with_stream(ask(&room, id, "p1"));

    let (response, mut assignment) = begun(&mut kit, stream("cut")).await;
    assignment.answer.chunk(delta("Hel")).unwrap();
    assignment.answer.fail("it fell over");
    let cut = messages(&text(response).await);
    assert_eq!((&cut[1]["type"], &cut[1]["participantId"]), (&json!("llm:error"), &json!("p1")));
    assert!(cut[1]["error"].as_str().unwrap().contains("it fell over"), "{cut:?}");

    let response = kit.send(stream("refused")).await;
    let mut assignment = kit.assigned().await;
    let refusal = Head { status: StatusCode::BAD_REQUEST, ..head(&[JSON]) };
    assignment.answer.head(refusal).unwrap();
    assignment.answer.chunk(Bytes::from_static(b"{\"error\":{\"message\":\"too long\"}}")).unwrap();
    assignment.answer.end();
    let refused = messages(&text(response).await);
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["error"], "too long (status 400)");

    let (response, assignment) = begun(&mut kit, stream("short")).await;
    answer(assignment, "");
    let short = messages(&text(response).await);
    assert!(short[2]["error"].as_str().unwrap().contains("cut off"), "{short:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_stream_is_told_in_pieces_of_a_bounded_length() {
    let mut kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let response = kit.send(with_stream(ask(&room, "r1", "p1"))).await;
    let mut assignment = kit.assigned().await;
    assignment.answer.head(head(&[JSON])).unwrap();
    let long = "é".repeat(20_000);
    let whole = json!({ "choices": [{ "message": { "content": long }, "finish_reason": "stop" }] });
    assignment.answer.chunk(whole.to_string().into()).unwrap();
    assignment.answer.end();
    let own = messages(&text(response).await);
    let tokens: Vec<&str> = own.iter().filter_map(|message| message["token"].as_str()).collect();
    assert_eq!((tokens.len(), tokens.concat()), (3, long));
}

#[tokio::test(start_paused = true)]
async fn an_impossible_question_is_answered_at_once() {
    let kit = Kit::new();
    let room = kit.room(None);
    kit.joins(&room, "away", &["m1"]);
    let of_request = async |request: Request<Body>| {
        let (status, error) = kit.answer(request).await;
        assert_eq!((&error["type"], &error["requestId"]), (&json!("llm:error"), &json!("r1")));
        assert_eq!(error["participantId"], "");
        status
    };
    let mut watching = room.subscribe(Form::Messages, None);
    assert_eq!(of_request(ask(&room, "r1", "nobody")).await, 503, "nobody lends now");
    let seen = watched(&mut watching).await;
    assert_eq!(seen[0]["requestId"], "r1", "so are those who wait for its answer in the room");
    assert_eq!(of_request(with_stream(ask(&room, "r1", "away"))).await, 503);
    let path = format!("/rooms/{}/messages", room.short_code());
    let bad = json!({ "type": "llm:request", "requestId": "r1", "targetId": "*" });
    assert_eq!(of_request(message(&path, &bad)).await, 400);
    let nowhere =
        json!({ "type": "llm:request", "requestId": "r1", "targetId": "*", "prompt": "" });
    let (status, words) = refusal(&kit, message("/messages", &nowhere)).await;
    assert!(status == 400 && words.contains("roomCode"), "{words}");
    assert!(kit.scheduler.is_idle());
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_bounded_and_each_has_an_id_of_its_own() {
    let kit = Kit::new();
    let room = kit.room(None);
    let ids: Vec<String> = (0..16).map(|n| format!("p{n}")).collect();
    let _lent: Vec<_> = ids.iter().map(|id| kit.lends(&room, id, &["m1"], CHAT)).collect();
    for n in 0..64 {
        assert_eq!(kit.answer(ask(&room, &format!("r{n}"), "*")).await.0, 202, "{n}");
    }
    let (status, error) = kit.answer(ask(&room, "r0", "*")).await;
    assert_eq!((status, &error["type"]), (409, &json!("llm:error")), "{error}");
    let response = kit.send(ask(&room, "r64", "*")).await;
    assert!(response.headers().contains_key("retry-after"));
    let (status, error) = answer_of(response).await;
    assert!(status == 429 && error.to_string().contains("in flight"), "{error}");
    let (other, _lent) = room_with_p1(&kit);
    assert_eq!(kit.answer(ask(&other, "r0", "p1")).await.0, 202, "another room has its own");
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_is_told_at_once() {
    let kit = Kit::new();
    let (room, _lent) = room_with_p1(&kit);
    let mut taken = 0;
    let refused = loop {
        match kit.answer(ask(&room, &format!("r{taken}"), "p1")).await {
            (202, _) => taken += 1,
            refused => break refused,
        }
    };
    assert_eq!(taken, 51, "one is served, and half of the queue is a room's");
    let (status, error) = refused;
    assert_eq!((status, &error["error"]), (429, &json!("queue full")));
    assert_eq!((&error["type"], &error["requestId"]), (&json!("llm:error"), &json!("r51")));
}

#[tokio::test(start_paused = true)]
async fn a_key_of_the_room_asks_on_its_own_account() {
    let mut kit = Kit::new();
    let room = kit.room(Some("sesame"));
    let _lent = kit.lends(&room, "p1", &["m1"], CHAT);
    let (key, other) = (kit.key(Some(&room), &[]), kit.key(None, &[]));
    assert_eq!(kit.answer(with_bearer(ask(&room, "r1", "p1"), key.expose())).await.0, 202);
    answer_head(kit.assigned().await);
    assert_eq!(kit.send(with_bearer(ask(&room, "r2", "p1"), other.expose())).await.status(), 401);
}

fn answer_head(mut assignment: Assignment) {
    assignment.answer.head(head(&[EVENTS])).unwrap();
    answer(assignment, DONE);
}

#[tokio::test(start_paused = true)]
async fn a_request_takes_its_memory_until_the_answers_head() {
    let mut kit = Kit::with(|_, limits| limits.bodies = 8 * 1024);
    let room = kit.room(None);
    let _lent = kit.lends(&room, "p", &["m"], CHAT);
    let long = |id: &str| {
        let body = json!({ "type": "llm:request", "requestId": id, "targetId": "p",
            "prompt": "x".repeat(3_500) });
        message(&format!("/rooms/{}/messages", room.short_code()), &body)
    };
    assert_eq!(kit.send(long("one")).await.status(), 202);
    let mut first = kit.assigned().await;
    assert_eq!(kit.send(long("two")).await.status(), 429);
    first.answer.head(head(&[EVENTS])).unwrap();
    first.answer.chunk(delta("a")).unwrap();
    tokio::task::yield_now().await;
    assert_eq!(kit.send(long("three")).await.status(), 202);
}
