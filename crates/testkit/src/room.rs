//! A room of a server, and the stream of its events.

use serde_json::Value;

use crate::{
    chat::CHAT,
    client::{Client, Response, Streaming},
    daemon::Daemon,
    participant::{FakeParticipant, Put},
    wait::within,
};

/// A room that was made.
#[derive(Debug, Clone)]
pub struct Room {
    /// Its six characters.
    pub code: String,
    /// The code to say aloud.
    pub spoken: String,
    pub id: String,
    pub host_token: String,
}

impl Room {
    pub async fn make(client: &Client, body: &Value) -> Self {
        let made = client.post_json("/v1/rooms", body).await;
        assert_eq!(made.status, 201, "{}", made.text());
        let data = &made.json()["data"];
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        Self {
            code: text(&data["room"]["code"]),
            spoken: text(&data["room"]["spokenCode"]),
            id: text(&data["room"]["id"]),
            host_token: text(&data["hostToken"]),
        }
    }

    /// A path of the room below `/v1/rooms`.
    pub fn plane(&self, rest: &str) -> String {
        format!("/v1/rooms/{}{rest}", self.code)
    }

    /// A path of the room below `/rooms`.
    pub fn path(&self, rest: &str) -> String {
        format!("/rooms/{}{rest}", self.code)
    }

    /// Where it is asked for a chat.
    pub fn chat(&self) -> String {
        self.path(CHAT)
    }

    /// A participant to be, of this id.
    pub fn put(&self, daemon: &Daemon, id: &str) -> Put {
        Put::new(daemon.address(), &self.code).id(id)
    }

    /// A participant of this id with the model `m`, once the server has heard it.
    pub async fn friend(&self, daemon: &Daemon, id: &str) -> FakeParticipant {
        self.put(daemon, id).heard().await
    }

    /// Closes it, as its host.
    pub async fn close(&self, client: &Client) -> Response {
        let host = client.clone().with_header("x-warren-host-token", &self.host_token);
        host.request("DELETE", &self.plane("")).send().await
    }
}

/// A stream of events.
#[derive(Debug)]
pub struct RoomEvents {
    answer: Streaming,
    read: String,
    is_broken: bool,
}

/// An event, or a comment, which has none of these.
#[derive(Debug, Clone, PartialEq)]
pub struct RoomEvent {
    pub id: Option<u64>,
    pub name: Option<String>,
    pub json: Value,
}

impl RoomEvents {
    pub async fn open(client: &Client, path: &str) -> Self {
        let request = client.request("GET", path).header("accept", "text/event-stream");
        Self::of(request.start().await).expect("a stream of events")
    }

    /// Those of an answer, unless it is a refusal.
    pub fn of(answer: Streaming) -> Option<Self> {
        let read = String::new();
        (answer.status == 200).then_some(Self { answer, read, is_broken: false })
    }

    /// The next event or comment, signs of life aside; nothing when the stream is over, however it ended.
    pub async fn next(&mut self) -> Option<RoomEvent> {
        // Signs of life are no events: they put off no deadline.
        within("the next event", self.read_next()).await
    }

    async fn read_next(&mut self) -> Option<RoomEvent> {
        loop {
            while let Some(end) = self.read.find("\n\n") {
                let frame: String = self.read.drain(..end + 2).collect();
                if frame != ": ping\n\n" {
                    return Some(event(&frame));
                }
            }
            let chunk = self.answer.try_chunk().await;
            self.is_broken |= chunk.is_err();
            self.read.push_str(std::str::from_utf8(&chunk.ok()??).expect("whole characters"));
        }
    }

    /// All events up to the first of this type.
    pub async fn until(&mut self, kind: &str) -> Vec<RoomEvent> {
        let mut events: Vec<RoomEvent> = Vec::new();
        while events.last().is_none_or(|event| event.json["type"] != kind) {
            let next = self.next().await;
            events.push(next.unwrap_or_else(|| panic!("no {kind} after {events:?}")));
        }
        events
    }

    /// Reads the stream to its end, which is an orderly one.
    pub async fn end(mut self) {
        while self.next().await.is_some() {}
        assert!(!self.is_broken, "the stream broke off");
    }
}

fn event(frame: &str) -> RoomEvent {
    let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
    let json = line("data: ").map(|data| serde_json::from_str(data).expect("JSON"));
    RoomEvent {
        id: line("id: ").map(|id| id.parse().expect("a number")),
        name: line("event: ").map(str::to_owned),
        json: json.unwrap_or_default(),
    }
}
