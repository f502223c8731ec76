//! Helpers that the tests of rooms share: a room, a participant in it, the shapes of answers, a stream of
//! events, and requests that come from another machine.

use serde_json::{Value, json};
use testkit::{
    Client, Daemon, FakeParticipant, Put, Request, Response, Streaming, TunnelAsk, within,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

use crate::common::{Posted, ask_for, post, serve};

/// A room that was made.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    /// Its six characters.
    pub(crate) code: String,
    /// The code to say aloud.
    pub(crate) spoken: String,
    pub(crate) id: String,
    pub(crate) host_token: String,
}

pub(crate) async fn make_room(client: &Client, body: &Value) -> Room {
    let made = client.post_json("/v1/rooms", body).await;
    let made = data(&made, 201);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    Room {
        code: text(&made["room"]["code"]),
        spoken: text(&made["room"]["spokenCode"]),
        id: text(&made["room"]["id"]),
        host_token: text(&made["hostToken"]),
    }
}

/// Asks a room for an answer of this model, in the background.
pub(crate) fn chat(client: &Client, room: &Room, model: &str) -> Posted {
    post(client, room.chat(), ask_for(model, false))
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

/// A participant that answers each chat, in the background, with its own id.
pub(crate) async fn answering(daemon: &Daemon, room: &Room, id: &'static str) {
    let mut participant = friend(daemon, room, id).await;
    tokio::spawn(async move {
        loop {
            let ask = participant.expect_request().await;
            participant.answer(&ask, 200, &completion(id)).await;
        }
    });
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

/// Checks that an answer is exactly this JSON text.
#[track_caller]
pub(crate) fn assert_text(response: &Response, status: u16, text: &str) {
    assert_eq!((response.status, response.text().as_str()), (status, text));
    assert_eq!(response.header("content-type"), Some("application/json"));
}

/// The names of an object's fields, sorted.
pub(crate) fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// A stream of events.
pub(crate) struct Events {
    answer: Streaming,
    read: String,
}

/// One event, as it was written.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) text: String,
    pub(crate) name: Option<String>,
    pub(crate) id: Option<u64>,
    pub(crate) json: Value,
}

impl Events {
    pub(crate) async fn open(client: &Client, path: &str) -> Self {
        Self::of(client.request("GET", path)).await
    }

    pub(crate) async fn of(request: Request) -> Self {
        let answer = request.header("accept", "text/event-stream").start().await;
        if answer.status != 200 {
            panic!("{}", answer.finish().await.text());
        }
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        Self { answer, read: String::new() }
    }

    /// The next event; nothing when the stream is over.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        // Signs of life are no events: they put off no deadline.
        within("the next event", self.read_next()).await
    }

    async fn read_next(&mut self) -> Option<Frame> {
        loop {
            while let Some(end) = self.read.find("\n\n") {
                let text: String = self.read.drain(..end + 2).collect();
                if !text.starts_with(':') {
                    return Some(Frame::of(text));
                }
            }
            let chunk = self.answer.next_chunk().await?;
            self.read.push_str(std::str::from_utf8(&chunk).expect("whole characters"));
        }
    }

    /// The JSON of the next event of this type; others are passed over.
    pub(crate) async fn until(&mut self, kind: &str) -> Frame {
        let mut passed = Vec::new();
        loop {
            match self.next().await {
                Some(frame) if frame.json["type"] == kind => return frame,
                Some(frame) => passed.push(frame.json["type"].clone()),
                None => panic!("the stream ended before {kind}, after {passed:?}"),
            }
        }
    }

    /// Reads the stream to its end.
    pub(crate) async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

impl Frame {
    fn of(text: String) -> Self {
        let line =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let json = serde_json::from_str(&line("data: ").expect("data")).expect("JSON");
        let id = line("id: ").map(|id| id.parse().expect("a number"));
        Self { name: line("event: "), id, json, text }
    }

    pub(crate) fn kind(&self) -> &str {
        self.json["type"].as_str().expect("a type")
    }
}

/// A client whose requests come from another machine, by way of a proxy.
pub(crate) fn elsewhere(daemon: &Daemon) -> Client {
    daemon.client().with_header("x-forwarded-for", "203.0.113.9")
}

/// Sends a request from another address of this machine: the status and the body.
pub(crate) async fn send_from(daemon: &Daemon, from: [u8; 4], request: Request) -> (u16, Value) {
    let exchange = async {
        let socket = TcpSocket::new_v4()?;
        socket.bind((from, 0).into())?;
        let mut stream = socket.connect(daemon.address()).await?;
        stream.write_all(&request.header("connection", "close").bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within("an answer", exchange).await.expect("the server answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.expect("a status"), serde_json::from_str(body).unwrap_or_default())
}

/// Another room that is used while strangers do what they do.
pub(crate) struct Neighbour {
    room: Room,
    participant: FakeParticipant,
    events: Events,
}

impl Neighbour {
    pub(crate) async fn new(daemon: &Daemon) -> Self {
        let room = open_room(daemon).await;
        let participant = friend(daemon, &room, "neighbour").await;
        let mut events = Events::open(&daemon.client(), &room.plane("/events")).await;
        assert_eq!(events.next().await.unwrap().kind(), "connected");
        Self { room, participant, events }
    }

    /// Asserts that the next events of the room are its own.
    pub(crate) async fn assert_untouched(&mut self, daemon: &Daemon) {
        assert_answers(daemon, &self.room, &mut self.participant).await;
        assert_eq!(self.events.next().await.unwrap().kind(), "llm.request");
        assert_eq!(self.events.next().await.unwrap().kind(), "llm.complete");
        let participants = data(&daemon.client().get(&self.room.plane("/participants")).await, 200);
        assert_eq!(participants.as_array().unwrap().len(), 1);
    }
}

/// Asks a participant for a chat, which it answers.
pub(crate) async fn assert_answers(
    daemon: &Daemon,
    room: &Room,
    participant: &mut FakeParticipant,
) {
    let (client, path) = (daemon.client(), room.chat());
    let asked = tokio::spawn(async move { client.post_json(&path, &ask_for("*", false)).await });
    let ask = participant.expect_request().await;
    say(participant, &ask, "good").await;
    let answer = asked.await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}
