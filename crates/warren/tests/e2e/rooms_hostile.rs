//! Participants that mean harm: malformed frames, answers to what they were not asked, floods.
//! They spoil their own answers and nothing else.

use serde_json::{Value, json};
use testkit::{Daemon, FakeParticipant};
use tokio_tungstenite::tungstenite::Message;

use crate::{
    common::{ask_for, post, serve},
    rooms_kit::{
        Neighbour, assert_answers, delta, friend, make_room, open_room, tunnel, with_room,
    },
};

/// Frames about a request that spoil it at most.
fn hostile(id: &str) -> Vec<Value> {
    let about = |kind: &str, more: Value| {
        let mut frame = json!({"type": format!("tunnel.response.{kind}"), "requestId": id});
        for (name, value) in more.as_object().unwrap() {
            frame[name] = value.clone();
        }
        frame
    };
    let headers = json!({"content-type": "application/json"});
    let start = |status: Value| about("start", json!({"status": status, "headers": headers}));
    let mut frames = vec![
        about("chunk", json!({"chunk": "aGk="})),
        about("chunk", json!({"chunk": "not base64!"})),
        about("chunk", json!({"chunk": 7})),
        about("chunk", json!({})),
        about("end", json!({})),
        about("error", json!({"stage": 7, "message": ["x"]})),
        about("error", json!({"message": "x".repeat(100_000)})),
        about("start", json!({"status": 200, "headers": {"bad name\n": "x"}})),
        about("start", json!({"status": 200, "headers": {"x-request-id": "a\r\nset-cookie: b=c"}})),
        about("start", json!({"status": 200, "headers": "none"})),
        about("start", json!({"status": 200, "headers": {"content-type": 7}})),
        about("unheard-of", json!({})),
        json!({"type": "tunnel.response.start", "requestId": [id], "status": 200}),
    ];
    for status in [
        json!(0),
        json!(99),
        json!(101),
        json!(204),
        json!(302),
        json!(1000),
        json!(-1),
        json!("200"),
        json!(null),
    ] {
        frames.push(start(status));
    }
    frames
}

#[tokio::test]
async fn a_participant_that_answers_nonsense_spoils_its_own_answer_and_nothing_else() {
    let daemon = serve().set("--request-timeout-secs", "15").start().await;
    let (client, room) = (daemon.client(), open_room(&daemon).await);
    let mut neighbour = Neighbour::new(&daemon).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    for number in 0..hostile("").len() {
        let asked = post(&client, room.chat(), ask_for("*", false));
        let ask = participant.expect_request().await;
        let frame = hostile(&ask.id).swap_remove(number);
        participant.say(&frame).await;
        // Those that are about nothing leave it to be answered.
        participant.start(&ask, 200, "application/json").await;
        participant.chunk(&ask, "{}").await;
        participant.end(&ask).await;
        let answer = asked.await.unwrap();
        let shown = format!("{:.100}", frame.to_string());
        assert!((200..600).contains(&answer.status), "{shown}");
        assert_eq!(answer.header("set-cookie"), None, "{shown}");
        assert!(answer.body.len() < 4096, "{shown}");
        if answer.status == 502 {
            let error = answer.json()["error"].as_str().unwrap().to_owned();
            assert!(error.starts_with("Failed to proxy request: Error: "), "{shown}: {error}");
        }
        assert_answers(&daemon, &room, &mut participant).await;
    }
    neighbour.assert_untouched(&daemon).await;
}

#[tokio::test]
async fn frames_that_are_none_and_floods_of_them_are_ignored() {
    let daemon = serve().start().await;
    let room = open_room(&daemon).await;
    let mut neighbour = Neighbour::new(&daemon).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let texts = [
        "",
        "null",
        "[]",
        "7",
        "{",
        "{}",
        "{\"type\":7}",
        "{\"type\":\"tunnel.request\"}",
        "{\"type\":\"tunnel.ping\"}",
        "{\"type\":\"tunnel.ping\",\"timestamp\":\"now\"}",
        "{\"type\":\"tunnel.ping\",\"timestamp\":-1e99}",
    ];
    for text in texts {
        participant.send(Message::text(text)).await;
    }
    for deep in ["[".repeat(100_000), "{\"type\":".repeat(50_000)] {
        participant.send(Message::text(deep)).await;
    }
    participant.send(Message::binary(vec![0; 1000])).await;
    participant.send(Message::Ping(vec![1; 100].into())).await;
    let chunk =
        json!({"type": "tunnel.response.chunk", "requestId": "r-0", "chunk": "aGk="}).to_string();
    for _ in 0..20_000 {
        participant.send(Message::text(chunk.clone())).await;
    }
    assert_answers(&daemon, &room, &mut participant).await;
    assert!(daemon.log().lines().count() < 1_000, "the log is not flooded");
    neighbour.assert_untouched(&daemon).await;
}

#[tokio::test]
async fn nobody_can_answer_for_another() {
    let (daemon, client, room) = with_room().await;
    let mut neighbour = Neighbour::new(&daemon).await;
    let mut honest = friend(&daemon, &room, "honest").await;
    let mut thief = tunnel(room.put(&daemon, "thief").model("other")).await;
    let asked = post(&client, room.chat(), ask_for("m", false));
    let ask = honest.expect_request().await;
    thief.answer(&ask, 200, &json!({"stolen": true})).await;
    thief.fail(&ask, "stolen").await;
    thief.ping(1).await;
    thief.expect_pong().await;
    let of_neighbour = thief_in_another_room(&daemon, &ask).await;
    honest.answer(&ask, 200, &json!({"honest": true})).await;
    assert_eq!(asked.await.unwrap().json(), json!({"honest": true}));
    drop(of_neighbour);
    neighbour.assert_untouched(&daemon).await;
}

async fn thief_in_another_room(daemon: &Daemon, ask: &testkit::TunnelAsk) -> FakeParticipant {
    let room = make_room(&daemon.client(), &json!({"name": "another"})).await;
    let mut thief = friend(daemon, &room, "honest").await;
    thief.answer(ask, 200, &json!({"stolen": true})).await;
    thief.ping(2).await;
    thief.expect_pong().await;
    thief
}

/// Nobody reads, and it sends on: the server gives up that answer, not itself.
#[tokio::test]
async fn a_participant_that_floods_an_answer_that_is_not_read_loses_it() {
    let (daemon, client, room) = with_room().await;
    let mut neighbour = Neighbour::new(&daemon).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let asked = client.post(&room.chat(), &ask_for("*", true)).open().await;
    let ask = participant.expect_request().await;
    participant.start(&ask, 200, "text/event-stream").await;
    let piece = delta(&"x".repeat(256 * 1024));
    for _ in 0..256 {
        participant.chunk(&ask, &piece).await;
    }
    participant.ping(1).await;
    participant.expect_pong().await;
    assert!(daemon.resident_bytes() < 200 << 20, "{}", daemon.resident_bytes());
    neighbour.assert_untouched(&daemon).await;
    asked.reset();
    participant.end(&ask).await;
    assert_answers(&daemon, &room, &mut participant).await;
}

/// A chunk that is too large costs its request, a frame that is too large the tunnel.
#[tokio::test]
async fn frames_without_measure_are_not_held() {
    let (daemon, client, room) = with_room().await;
    let mut neighbour = Neighbour::new(&daemon).await;
    let mut participant = friend(&daemon, &room, "p1").await;
    let asked = tokio::spawn(client.post(&room.chat(), &ask_for("*", false)).send());
    let ask = participant.expect_request().await;
    participant.start(&ask, 200, "application/json").await;
    participant.chunk(&ask, vec![b' '; 13 << 20]).await;
    assert_eq!(asked.await.unwrap().status, 502);
    assert_answers(&daemon, &room, &mut participant).await;
    let huge = "x".repeat(8 << 20);
    for _ in 0..4 {
        participant.send(Message::text(huge.clone())).await;
    }
    assert_answers(&daemon, &room, &mut participant).await;
    assert!(daemon.resident_bytes() < 400 << 20, "{}", daemon.resident_bytes());
    neighbour.assert_untouched(&daemon).await;
}
