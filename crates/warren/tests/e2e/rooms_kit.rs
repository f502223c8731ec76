//! What the tests of rooms share: a room, a participant in it, the shapes of answers, and a stream of
//! events.

use serde_json::{Value, json};
use testkit::{Client, Daemon, FakeParticipant, Put, Response, Streaming, TunnelAsk, within};

use crate::common::{ask_for, post, serve};

/// A room that was made.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    /// Its six characters.
    pub(crate) code: String,
    /// The code to say aloud.
    pub(crate) spoken: String,
    pub(crate) host_token: String,
}

pub(crate) async fn make_room(client: &Client, body: &Value) -> Room {
    let made = client.post_json("/v1/rooms", body).await;
    let made = data(&made, 201);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    Room {
        code: text(&made["room"]["code"]),
        spoken: text(&made["room"]["spokenCode"]),
        host_token: text(&made["hostToken"]),
    }
}

/// A room without a password.
pub(crate) async fn open_room(daemon: &Daemon) -> Room {
    make_room(&daemon.client(), &json!({"name": "friends"})).await
}

/// A server with defaults, a client of it, and a room without a password.
pub(crate) async fn with_room() -> (Daemon, Client, Room) {
    let daemon = serve().start().await;
    let room = open_room(&daemon).await;
    let client = daemon.client();
    (daemon, client, room)
}

impl Room {
    /// A path of the room below `/v1/rooms`.
    pub(crate) fn plane(&self, rest: &str) -> String {
        format!("/v1/rooms/{}{rest}", self.code)
    }

    /// A path of the room below `/rooms`.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("/rooms/{}{rest}", self.code)
    }

    /// Where it is asked for a chat.
    pub(crate) fn chat(&self) -> String {
        self.path("/v1/chat/completions")
    }

    /// A participant to be, of this id.
    pub(crate) fn put(&self, daemon: &Daemon, id: &str) -> Put {
        Put::new(daemon.address(), &self.code).id(id)
    }
}

/// A participant once the server has heard it on its tunnel.
pub(crate) async fn tunnel(put: Put) -> FakeParticipant {
    let mut participant = put.join().await;
    participant.expect_pong().await;
    participant
}

/// A participant of this id with the model `m`.
pub(crate) async fn friend(daemon: &Daemon, room: &Room, id: &str) -> FakeParticipant {
    tunnel(room.put(daemon, id)).await
}

/// Answers a request with a chat that says `text`.
pub(crate) async fn say(participant: &mut FakeParticipant, ask: &TunnelAsk, text: &str) {
    participant.answer(ask, 200, &completion(text)).await;
}

/// A chat completion.
pub(crate) fn completion(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    })
}

/// A piece of a streamed chat.
pub(crate) fn delta(text: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    format!("data: {chunk}\n\n")
}

/// The end of a streamed chat.
pub(crate) const FINISH: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}],",
    "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n",
    "data: [DONE]\n\n",
);

/// What a good answer of the plane holds.
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

/// A stream of events.
pub(crate) struct Events {
    answer: Streaming,
    read: String,
}

impl Events {
    pub(crate) async fn open(client: &Client, path: &str) -> Self {
        let answer =
            client.request("GET", path).header("accept", "text/event-stream").start().await;
        assert_eq!(answer.status, 200, "{path}");
        Self { answer, read: String::new() }
    }

    /// The JSON of the next event of this type; others are passed over.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        // Signs of life are no events: they put off no deadline.
        let wanted = async {
            loop {
                let event = self.next().await.expect("the stream stands");
                if event["type"] == kind {
                    return event;
                }
            }
        };
        within(kind, wanted).await
    }

    /// Reads the stream to its end.
    pub(crate) async fn end(mut self) {
        within("the end of a stream", async { while self.next().await.is_some() {} }).await;
    }

    /// The JSON of the next event; nothing when the stream is over.
    async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some(end) = self.read.find("\n\n") {
                let frame: String = self.read.drain(..end + 2).collect();
                if let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) {
                    return Some(serde_json::from_str(data).expect("JSON"));
                }
            }
            let chunk = self.answer.next_chunk().await?;
            self.read.push_str(std::str::from_utf8(&chunk).expect("whole characters"));
        }
    }
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
