//! Stock participants of rooms: a whole life, and the exchanges that were captured from the stock
//! hub, frame for frame. Ids, times and tokens are `_` in them, and what only a Warren says is left
//! out.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Daemon, FakeParticipant, Put, Streaming, eventually, within};

use crate::common::serve;

/// The fields that differ each time.
const VARYING: [&str; 19] = [
    "id",
    "code",
    "hostId",
    "createdAt",
    "requestId",
    "joinedAt",
    "lastSeen",
    "updatedAt",
    "roomId",
    "token",
    "url",
    "timestamp",
    "roomCode",
    "clientId",
    "ttftMs",
    "durationMs",
    "tokensPerSecond",
    "hint",
    "lastTunnelSeenAt",
];

/// The fields that only a Warren has; stock clients drop them.
const OURS: [&str; 8] = [
    "spokenCode",
    "expiresAt",
    "hostToken",
    "sessionToken",
    "models",
    "maxConcurrent",
    "public",
    "owner",
];

/// JSON text as it is compared: the keys in their order, what varies as `_`, and nothing of ours.
fn normal(text: &str) -> String {
    let text = OURS
        .iter()
        .fold(text.to_owned(), |text, key| replaced(&text, &format!(",\"{key}\":"), None));
    let text =
        VARYING.iter().fold(text, |text, key| replaced(&text, &format!("\"{key}\":"), Some("_")));
    // The same number.
    text.replace(".0,", ",").replace(".0}", "}")
}

/// The text with every value after this key replaced, or taken away together with its key.
fn replaced(text: &str, key: &str, by: Option<&str>) -> String {
    let (mut rest, mut out) = (text, String::new());
    while let Some(at) = rest.find(key) {
        let value = at + key.len();
        out.push_str(&rest[..at]);
        if let Some(by) = by {
            out.push_str(key);
            out.push_str(by);
        }
        rest = &rest[value + value_len(&rest[value..])..];
    }
    out + rest
}

fn value_len(text: &str) -> usize {
    let (mut depth, mut quoted) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b',' | b'}' | b']' if depth == 0 => return at,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

async fn create(daemon: &Daemon, body: Value) -> (String, String) {
    let response = daemon.client().post_json("/v1/rooms", &body).await;
    assert_eq!(response.status, 201, "{}", response.text());
    let code = response.json()["data"]["room"]["code"].as_str().unwrap().to_owned();
    (code, response.text())
}

async fn room() -> (Daemon, String) {
    let daemon = serve().start().await;
    let (code, _) = create(&daemon, json!({"name": "Room"})).await;
    (daemon, code)
}

/// A participant that the server has seen alive.
async fn online(put: Put) -> FakeParticipant {
    let participant = put.join().await;
    let connected = async || participant.heartbeat().await.json()["data"]["status"] == "online";
    eventually("the tunnel's standing", testkit::DEADLINE, connected).await;
    participant
}

fn worker_1(daemon: &Daemon, code: &str) -> Put {
    Put::new(daemon.address(), code).id("worker-1").model("mock-1").field("nickname", json!("w1"))
}

/// Asks the room in the background.
fn ask(daemon: &Daemon, code: &str, body: Value) -> tokio::task::JoinHandle<testkit::Response> {
    let (client, path) = (daemon.client(), format!("/rooms/{code}/v1/chat/completions"));
    tokio::spawn(async move { client.post_json(&path, &body).await })
}

fn chat(stream: bool) -> Value {
    json!({"model": "*", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
}

/// Watches a room as stock clients do.
struct Watch(Streaming);

impl Watch {
    async fn room(daemon: &Daemon, code: &str) -> Self {
        let request = daemon.client().request("GET", &format!("/v1/rooms/{code}/events"));
        let stream = request.header("accept", "text/event-stream").start().await;
        assert_eq!(stream.status, 200);
        assert!(stream.header("content-type").unwrap().starts_with("text/event-stream"));
        Self(stream)
    }

    /// The next events of this name, which came in one piece.
    async fn event(&mut self, name: &str) -> String {
        loop {
            let piece = self.0.next_chunk().await.expect("an event");
            let piece = String::from_utf8(piece.to_vec()).unwrap();
            assert!(piece.ends_with("\n\n"), "a frame that is cut: {piece:?}");
            let frames = piece.split_inclusive("\n\n");
            let wanted = |frame: &&str| frame.starts_with(&format!("event: {name}\n"));
            if let Some(frame) = frames.into_iter().find(wanted) {
                return frame.to_owned();
            }
        }
    }
}

#[tokio::test]
async fn a_stock_participants_whole_life() {
    let (daemon, code) = room().await;
    let mut watch = Watch::room(&daemon, &code).await;
    let mut participant =
        online(Put::new(daemon.address(), &code).beating(Duration::from_millis(50))).await;
    watch.event("participant.joined").await;
    watch.event("participant.updated").await;

    let asked = ask(&daemon, &code, chat(false));
    let request = participant.expect_request().await;
    assert_eq!(request.json["body"]["model"], "m");
    participant.answer(&request, 200, &json!({"choices": [], "n": 1})).await;
    let answer = within("the answer", asked).await.unwrap();
    assert_eq!((answer.status, answer.json()), (200, json!({"choices": [], "n": 1})));

    let asked = ask(&daemon, &code, chat(true));
    let request = participant.expect_request().await;
    participant.start(&request, 200, "text/event-stream").await;
    // Cut where no event ends.
    let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"gr\u{fc}n\"}}]}\n\ndata: [DONE]\n\n";
    for piece in events.as_bytes().chunks(7) {
        participant.chunk(&request, piece).await;
    }
    participant.end(&request).await;
    let answer = within("the stream", asked).await.unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (200, events));

    assert_eq!(participant.heartbeat().await.json()["data"]["success"], true);
    assert!(!participant.has_ended());
    let left = participant.leave().await;
    assert_eq!((left.status, &left.json()["data"]), (200, &json!({"success": true})));
    watch.event("participant.left").await;
    let nobody = within("a refusal", ask(&daemon, &code, chat(false))).await.unwrap();
    assert_eq!((nobody.status, nobody.json()["error"].is_string()), (503, true), "it is empty");
}

#[tokio::test]
async fn a_room_and_a_participant_are_told_as_captured() {
    let daemon = serve().start().await;
    let defaults = json!({"temperature": 0.2, "max_tokens": 64, "instructions": "be kind"});
    let (code, made) =
        create(&daemon, json!({"name": "Locked", "password": "pw", "defaults": defaults})).await;
    assert_eq!(
        normal(&made),
        normal(
            r#"{"data":{"room":{"id":"cFwInO5OzqRhORr2jYdij","code":"4V9SXC","name":"Locked","hostId":"684b583f-…","createdAt":1795170970726,"defaults":{"temperature":0.2,"max_tokens":64,"hasInstructions":true},"passwordProtected":true,"participantCount":0},"hostId":"684b583f-…"},"meta":{"requestId":"e0024f79-…"}}"#
        )
    );
    let specs = json!({"gpu": "RTX", "vram": 24, "ram": 64, "cpu": "x"});
    let put = Put::new(daemon.address(), &code)
        .id("p9")
        .field("nickname", json!("Nine"))
        .field("specs", specs)
        .field("config", json!({"temperature": 0.5, "instructions": "x"}));
    let refused = put.put().await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["code"]),
        (401, &json!("INVALID_PASSWORD"))
    );
    let put = put.field("password", json!("pw"));
    let joined = put.put().await;
    assert_eq!(joined.status, 201);
    assert_eq!(
        normal(&joined.text()),
        normal(
            r#"{"data":{"participant":{"id":"p9","nickname":"Nine","model":"m","endpoint":"http://127.0.0.1:1","config":{"temperature":0.5,"hasInstructions":true},"specs":{"gpu":"RTX","vram":24,"ram":64,"cpu":"x"},"capabilities":{"openResponses":"unknown","chatCompletions":"unknown"},"connection":{"kind":"tunnel","connected":false,"lastTunnelSeenAt":null},"status":"offline","joinedAt":1795171197706,"lastSeen":1795171197706,"updatedAt":1795171197706},"roomId":"tNsiA6rNm6x9-OyqZnvaw","tunnel":{"token":"e7b8e9fc-…","url":"ws://127.0.0.1:3911/v1/rooms/NZZ6LS/participants/p9/tunnel"}},"meta":{"requestId":"2c3c9fd6-…"}}"#
        )
    );
    let place = &joined.json()["data"]["tunnel"];
    let url = format!("ws://{}/v1/rooms/{code}/participants/p9/tunnel", daemon.address());
    assert_eq!(place["url"], url);
}

#[tokio::test]
async fn a_room_that_is_not_there_is_told_as_captured() {
    let daemon = serve().start().await;
    let missing = daemon.client().get("/v1/rooms/NOROOM").await;
    assert_eq!(missing.status, 404);
    assert_eq!(
        normal(&missing.text()),
        normal(
            r#"{"error":{"code":"ROOM_NOT_FOUND","message":"Room not found.","hint":"Run 'gambi room list' to inspect available rooms."},"meta":{"requestId":"ac15009b-…"}}"#
        )
    );
}

#[tokio::test]
async fn events_are_framed_as_captured() {
    let (daemon, code) = room().await;
    let mut watch = Watch::room(&daemon, &code).await;
    let connected = watch.event("connected").await;
    assert_eq!(
        normal(&connected),
        normal(
            "event: connected\ndata: {\"type\":\"connected\",\"timestamp\":1795170982644,\"roomCode\":\"ZAIWXC\",\"data\":{\"clientId\":\"6d51be1f-…\"}}\n\n"
        )
    );
    let mut participant = online(worker_1(&daemon, &code)).await;

    let asked = ask(&daemon, &code, chat(false));
    let request = participant.expect_request().await;
    assert_eq!(
        normal(&watch.event("llm.request").await),
        normal(
            "event: llm.request\ndata: {\"type\":\"llm.request\",\"timestamp\":1795170986688,\"roomCode\":\"ZAIWXC\",\"data\":{\"requestId\":\"249fe54f-…\",\"participantId\":\"worker-1\",\"model\":\"*\",\"protocol\":\"chatCompletions\"}}\n\n"
        )
    );
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    participant.answer(&request, 200, &json!({"choices": [], "usage": usage})).await;
    within("the answer", asked).await.unwrap();
    assert_eq!(
        normal(&watch.event("llm.complete").await),
        normal(
            "event: llm.complete\ndata: {\"type\":\"llm.complete\",\"timestamp\":1795170986710,\"roomCode\":\"ZAIWXC\",\"data\":{\"requestId\":\"249fe54f-…\",\"participantId\":\"worker-1\",\"model\":\"mock-1\",\"protocol\":\"chatCompletions\",\"metrics\":{\"ttftMs\":22,\"durationMs\":22,\"inputTokens\":3,\"outputTokens\":4,\"totalTokens\":7,\"tokensPerSecond\":181.8181818181818}}}\n\n"
        )
    );

    let asked = ask(&daemon, &code, chat(true));
    let request = participant.expect_request().await;
    participant.start(&request, 200, "text/event-stream").await;
    participant.chunk(&request, "data: [DONE]\n\n").await;
    participant.end(&request).await;
    within("the stream", asked).await.unwrap();
    assert_eq!(
        without_tokens(&watch.event("llm.complete").await),
        normal(
            "event: llm.complete\ndata: {\"type\":\"llm.complete\",\"timestamp\":1795170986851,\"roomCode\":\"ZAIWXC\",\"data\":{\"requestId\":\"c117fc52-…\",\"participantId\":\"worker-1\",\"model\":\"mock-1\",\"protocol\":\"chatCompletions\",\"metrics\":{\"ttftMs\":52,\"durationMs\":119}}}\n\n"
        )
    );

    let path = format!("/rooms/{code}/v1/chat/completions");
    let asked = daemon.client().post(&path, &chat(true)).open().await;
    let request = participant.expect_request().await;
    participant.start(&request, 200, "text/event-stream").await;
    participant
        .chunk(&request, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n")
        .await;
    let mut stream = asked.answer().await;
    stream.next_chunk().await.expect("its beginning");
    drop(participant);
    assert_eq!(
        told_error(&watch.event("llm.error").await),
        told_error(
            "event: llm.error\ndata: {\"type\":\"llm.error\",\"timestamp\":1795171734287,\"roomCode\":\"1CIQIR\",\"data\":{\"requestId\":\"dd52c816-…\",\"participantId\":\"worker-1\",\"nickname\":\"w1\",\"endpoint\":\"http://127.0.0.1:1\",\"model\":\"mock-1\",\"protocol\":\"chatCompletions\",\"stage\":\"stream\",\"error\":\"Error: Participant tunnel disconnected.\"}}\n\n"
        )
    );
    let rest = stream.finish().await.text();
    assert!(rest.contains("error"), "a loss is no clean end: {rest:?}");

    let gone =
        daemon.client().request("DELETE", &format!("/v1/rooms/{code}/participants/worker-1"));
    assert_eq!(gone.send().await.status, 200);
    assert_eq!(
        normal(&watch.event("participant.left").await),
        normal(
            "event: participant.left\ndata: {\"type\":\"participant.left\",\"timestamp\":1795171198228,\"roomCode\":\"NZZ6LS\",\"data\":{\"participantId\":\"worker-1\"}}\n\n"
        )
    );
}

/// An `llm.complete` without the tokens, which a stock hub does not count in streams.
fn without_tokens(frame: &str) -> String {
    let tokens = ["inputTokens", "outputTokens", "totalTokens", "tokensPerSecond"];
    let without = |text: String, key: &str| replaced(&text, &format!(",\"{key}\":"), None);
    tokens.into_iter().fold(normal(frame), without)
}

/// An `llm.error`, whose words are each server's own.
fn told_error(frame: &str) -> String {
    replaced(&normal(frame), "\"error\":", Some("_"))
}

#[tokio::test]
async fn tunnel_frames_are_as_captured() {
    let (daemon, code) = room().await;
    let mut participant = online(worker_1(&daemon, &code)).await;
    participant.fall_silent();
    let path = format!("/rooms/{code}/v1/chat/completions");
    let body = r#"{"model":"*","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true}}"#;
    let request = daemon.client().request("POST", &path).header("content-type", "application/json");
    let asked = request.body(body).open().await;
    let request = participant.expect_request().await;
    let sent = body.replace("\"*\"", "\"mock-1\"");
    // All but the mark of where the request has been, which stock participants pass on.
    let via = request.json["headers"]["x-warren-via"].as_str().unwrap();
    let captured = format!(
        r#"{{"type":"tunnel.request","requestId":"…","operation":"chat.completions.create","method":"POST","path":"/v1/chat/completions","headers":{{"Content-Type":"application/json","x-warren-via":"{via}"}},"body":{sent},"stream":true}}"#
    );
    assert_eq!(normal(&request.text), normal(&captured));
    // As it was captured of the stock runtime.
    let id = &request.id;
    for frame in [
        format!(
            r#"{{"type":"tunnel.response.start","requestId":"{id}","status":200,"headers":{{"content-type":"text/event-stream","cache-control":"no-cache"}}}}"#
        ),
        format!(
            r#"{{"type":"tunnel.response.chunk","requestId":"{id}","chunk":"ZGF0YTogW0RPTkVdCgo="}}"#
        ),
        format!(r#"{{"type":"tunnel.response.end","requestId":"{id}"}}"#),
    ] {
        participant.say(&serde_json::from_str(&frame).unwrap()).await;
    }
    let answer = asked.answer().await.finish().await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "data: [DONE]\n\n"));

    participant.ping(1_795_171_909_121).await;
    loop {
        let pong = participant.expect_pong().await;
        if pong == json!({"type": "tunnel.pong", "timestamp": 1_795_171_909_121_u64}) {
            break;
        }
    }

    let asked = ask(&daemon, &code, chat(false));
    let request = participant.expect_request().await;
    participant.fail(&request, "connect ECONNREFUSED").await;
    let failed = within("the failure", asked).await.unwrap();
    assert_eq!(failed.status, 502);
    assert!(failed.json()["error"].is_string(), "{}", failed.text());
}
