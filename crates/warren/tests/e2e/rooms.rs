//! Rooms of the real binary, where the crates below do not reach: its disk, its clock, its log, its
//! memory, its end, and the addresses of real connections.
//!
//! What a room answers is tested in `api`, who is in it in `rooms`, and what passes through a
//! participant in `providers`; the bytes are compared with a stock server's in `protocol`.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{DEADLINE, Gate, MockBackend, Reply, Room, RoomEvents, chat::delta, eventually};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    common::{CHAT, ask_for, post, serve},
    rooms_kit::{assert_answers, data, message, open_room, refused, say, with_room},
};

#[tokio::test]
async fn rooms_and_who_is_in_them_outlive_the_server() {
    let mut daemon = serve().start().await;
    let client = daemon.client();
    let defaults = json!({"temperature": 0.5, "instructions": "secret words"});
    let body = json!({"name": "kept", "password": "pw", "defaults": defaults, "public": true});
    let room = Room::make(&client, &body).await;
    let put = room.put(&daemon, "p1").field("password", json!("pw"));
    let before = put.clone().heard().await;
    let session = before.joined["sessionToken"].as_str().unwrap().to_owned();
    let summary = data(&client.get(&room.plane("")).await, 200);
    daemon.kill_and_restart().await;
    let after = data(&daemon.client().get(&format!("/v1/rooms/{}", room.spoken)).await, 200);
    for field in
        ["id", "code", "name", "hostId", "createdAt", "defaults", "passwordProtected", "public"]
    {
        assert_eq!(after[field], summary[field], "{field}");
    }
    assert_eq!(after["participantCount"], 1);
    let member = daemon.client().with_token("pw");
    let seen = data(&member.get(&room.plane("/participants/p1")).await, 200);
    assert_eq!((&seen["status"], &seen["nickname"]), (&json!("offline"), &json!("Ann")));
    assert_eq!(
        daemon.client().with_token("no").get(&room.plane("/participants")).await.status,
        401
    );
    let mut back = put.field("sessionToken", json!(session)).heard().await;
    assert_eq!(back.joined["sessionToken"], session, "it is known still");
    let asked = post(&member, room.chat(), ask_for("*", false));
    let ask = back.expect_request().await;
    assert_eq!(ask.json["body"]["messages"][0]["content"], "secret words");
    say(&mut back, &ask, "hi").await;
    assert_eq!(asked.await.unwrap().status, 200);
    let host = daemon.client().with_header("x-warren-host-token", &room.host_token);
    assert_eq!(host.request("DELETE", &room.plane("")).send().await.status, 200);
    daemon.stop_and_restart().await;
    refused(&daemon.client().get(&room.plane("")).await, 404, "ROOM_NOT_FOUND");
}

#[tokio::test]
async fn a_room_that_nobody_uses_ends_and_one_with_a_participant_does_not() {
    let daemon = serve().set("--room-idle-secs", "1").start().await;
    let (client, unused) = (daemon.client(), open_room(&daemon).await);
    let used = open_room(&daemon).await;
    let own = Room::make(&client, &json!({"name": "long", "expiresSecs": 600})).await;
    let mut member = used.friend(&daemon, "p1").await;
    let mut watching = RoomEvents::open(&client, &unused.plane("/events")).await;
    let codes = async || {
        let rooms = data(&client.get("/v1/rooms").await, 200);
        let codes = rooms.as_array().unwrap().iter().map(|room| room["code"].clone());
        codes.collect::<Vec<_>>()
    };
    let ended = async || codes().await == [json!(used.code), json!(own.code)];
    eventually("an unused room's end", DEADLINE + Duration::from_secs(5), ended).await;
    let closed = watching.until("room.closed").await.pop().unwrap().json;
    assert!(closed["data"]["reason"].as_str().unwrap().contains("nobody"), "{closed}");
    member.ping(1).await;
    member.expect_pong().await;
}

/// With a stream open, and with a participant: neither holds up the stop.
#[tokio::test]
async fn a_stop_of_the_server_ends_streams_and_tunnels_in_order() {
    let mut daemon = serve().start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let named = RoomEvents::open(&client, &room.plane("/events")).await;
    let all = RoomEvents::open(&client, "/events?role=tui").await;
    let mut participant = room.friend(&daemon, "p1").await;
    participant.fall_silent();
    daemon.sigterm();
    assert_eq!(participant.expect_close().await.map(|close| close.0), Some(1001));
    drop(participant);
    named.end().await;
    all.end().await;
    assert_eq!(daemon.exit().await, Some(0));
}

/// Passwords, codes and tokens are credentials.
#[tokio::test]
async fn no_credential_of_a_room_is_logged() {
    let mut daemon = serve().set("--log", "trace").start().await;
    let room =
        Room::make(&daemon.client(), &json!({"name": "a", "password": "hunter2-hunter2"})).await;
    let put = room.put(&daemon, "p1").field("password", json!("hunter2-hunter2"));
    let participant = put.heard().await;
    let query = format!("{}?password=hunter2-hunter2", room.path("/v1/models"));
    assert_eq!(daemon.client().get(&query).await.status, 200);
    daemon.client().with_token("hunter2-wrong").get(&room.path("/v1/models")).await;
    daemon.client().get(&room.plane("/nothing")).await;
    daemon
        .client()
        .with_token("hunter2-hunter2")
        .post_json(&room.chat(), &json!({"model": "none"}))
        .await;
    let texts =
        [participant.joined["tunnel"]["token"].clone(), participant.joined["sessionToken"].clone()];
    let host = daemon.client().with_header("x-warren-host-token", &room.host_token);
    assert_eq!(host.request("DELETE", &room.plane("")).send().await.status, 200);
    drop(participant);
    daemon.sigterm();
    assert_eq!(daemon.exit().await, Some(0));
    let log = daemon.log();
    let secrets = ["hunter2", &room.host_token, &room.code, &room.spoken];
    for secret in secrets.into_iter().chain(texts.iter().map(|text| text.as_str().unwrap())) {
        assert!(!log.contains(secret), "{secret} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn clients_of_a_trusted_proxy_are_told_apart() {
    let daemon = serve().set("--trusted-proxies", "127.0.0.1,10.0.0.0/8").start().await;
    let room = open_room(&daemon).await;
    let from = |line: &str| daemon.client().with_header("x-forwarded-for", line);
    for number in 0..11 {
        // What the client itself sent stands before the address that the proxy adds.
        let stranger = from(&format!("192.0.2.{number}, 203.0.113.7, 10.0.0.3"));
        let tried = stranger.get(&format!("/rooms/ZZZZ{number:02}/v1/models")).await;
        assert_eq!(tried.status, if number < 10 { 404 } else { 429 });
    }
    assert_eq!(from("203.0.113.8").get(&room.path("/v1/models")).await.status, 200);
    assert_eq!(from("203.0.113.7").get(&room.path("/v1/models")).await.status, 429);
    let forwarded = daemon.client().with_header("forwarded", "for=\"203.0.113.7:80\"");
    assert_eq!(forwarded.get(&room.path("/v1/models")).await.status, 429);
    let local = from("127.0.0.1").post_json(CHAT, &ask_for("m", false)).await;
    assert_eq!(local.status, 401, "what a proxy passes on is never local");
}

fn join(room: &Room, endpoint: &str) -> Value {
    let participant = json!({
        "id": "p1", "nickname": "Ann", "model": "m", "endpoint": endpoint, "specs": {}, "config": {},
    });
    json!({"type": "room:join", "code": room.spoken, "participant": participant})
}

#[tokio::test]
async fn an_endpoint_at_the_address_that_joins_is_called_and_streams() {
    let (daemon, client, room) = with_room().await;
    let backend = MockBackend::start(&["m"]).await;
    message(&client.post_json("/messages", &join(&room, &backend.url())).await, 201, "room:joined");
    let connected = async || {
        let seen = client.get(&room.plane("/participants/p1")).await.json();
        seen["data"]["connection"]["connected"] == true
    };
    eventually("the endpoint being called", DEADLINE, connected).await;
    let answer = client.with_token("secret").post_json(&room.chat(), &ask_for("*", false)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "hello");
    let got = backend.request().await;
    assert_eq!((got.json()["model"].as_str(), got.header("authorization")), (Some("m"), None));
    let gate = Gate::closed();
    backend.then(Reply::stream(["data: 1\n\n", "data: 2\n\n"], &gate));
    let asked = daemon.client().post(&room.chat(), &ask_for("*", true)).open().await;
    gate.open(1);
    let mut answer = asked.answer().await;
    answer.expect("data: 1\n\n").await;
    answer.reset();
    backend.aborted(1).await;
}

/// Nobody reads, and it sends on; a chunk that is too large; frames that cannot be read: the server's
/// memory and its log stay what they were, and the participant itself stays.
#[tokio::test]
async fn a_participant_that_floods_fills_neither_memory_nor_the_log() {
    let (daemon, client, room) = with_room().await;
    let mut participant = room.friend(&daemon, "p1").await;
    let unread = client.post(&room.chat(), &ask_for("*", true)).open().await;
    let ask = participant.expect_request().await;
    participant.start(&ask, 200, "text/event-stream").await;
    let piece = delta(&"x".repeat(256 * 1024));
    for _ in 0..256 {
        participant.chunk(&ask, &piece).await;
    }
    participant.ping(1).await;
    participant.expect_pong().await;
    assert!(daemon.resident_bytes() < 200 << 20, "{}", daemon.resident_bytes());
    unread.reset();
    participant.end(&ask).await;

    let asked = tokio::spawn(client.post(&room.chat(), &ask_for("*", false)).send());
    let ask = participant.expect_request().await;
    participant.start(&ask, 200, "application/json").await;
    participant.chunk(&ask, vec![b' '; 13 << 20]).await;
    assert_eq!(asked.await.unwrap().status, 502);

    let huge = "x".repeat(8 << 20);
    for _ in 0..4 {
        participant.send(Message::text(huge.clone())).await;
    }
    for deep in ["[".repeat(100_000), "{\"type\":".repeat(50_000)] {
        participant.send(Message::text(deep)).await;
    }
    let chunk = json!({"type": "tunnel.response.chunk", "requestId": "r-0", "chunk": "aGk="});
    for _ in 0..20_000 {
        participant.send(Message::text(chunk.to_string())).await;
    }
    assert_answers(&daemon, &room, &mut participant).await;
    assert!(daemon.resident_bytes() < 400 << 20, "{}", daemon.resident_bytes());
    assert!(daemon.log().lines().count() < 1_000, "the log is not flooded");
}
