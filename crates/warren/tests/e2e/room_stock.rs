//! The whole life of a stock participant of a room.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Daemon, FakeParticipant, Put, Room, Streaming, eventually, within};

use crate::common::serve;

async fn room() -> (Daemon, String) {
    let daemon = serve().start().await;
    let room = Room::make(&daemon.client(), &json!({"name": "Room"})).await;
    (daemon, room.code)
}

/// A participant that the server has seen alive.
async fn online(put: Put) -> FakeParticipant {
    let participant = put.join().await;
    let connected = async || participant.heartbeat().await.json()["data"]["status"] == "online";
    eventually("the tunnel's standing", testkit::DEADLINE, connected).await;
    participant
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
