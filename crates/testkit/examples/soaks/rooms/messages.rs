//! Clients of the spec's messages: `llm:request`s, answered in a stream of their own or in the
//! room's.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{
    Random, Request,
    lab::{
        Nonce,
        http::{self, Answer},
    },
};
use tokio::time::timeout;

use crate::rooms::{
    account::RequestEnd,
    frames::{Frame, Frames, Tokens, belongs},
    load::{HANG_UPS, hang_up, named, refused, selector},
    room::Room,
};

/// How long a client that missed messages waits for the end, which it may have missed.
const MAY_HAVE_ENDED: Duration = Duration::from_secs(45);

/// Sends one request, to any target.
pub(crate) async fn ask(room: &Room, nonce: Nonce, random: &mut Random) -> RequestEnd {
    let target = selector(room, random);
    if random.chance(HANG_UPS) {
        return hang_up(room, &streamed(request(room, nonce, &target)), random).await;
    }
    llm_request(room, nonce, &target, random.chance(0.5)).await
}

fn request(room: &Room, nonce: Nonce, target: &str) -> Request {
    let id = nonce.text();
    let body = json!({"type": "llm:request", "requestId": id, "targetId": target, "prompt": id});
    room.post("/messages", &body)
}

fn streamed(request: Request) -> Request {
    request.header("accept", "text/event-stream")
}

/// Asks, and reads to the end: in a stream of its own, or in the room's.
pub(crate) async fn llm_request(room: &Room, nonce: Nonce, target: &str, own: bool) -> RequestEnd {
    let request = request(room, nonce, target);
    let fate = match own {
        true => in_own_stream(room, nonce, &streamed(request)).await,
        false => in_the_rooms_stream(room, nonce, &request).await,
    };
    named(fate, nonce, target)
}

async fn in_own_stream(room: &Room, nonce: Nonce, request: &Request) -> RequestEnd {
    let answer = match http::send(room.address, request).await {
        Ok(answer) => answer,
        Err(error) => return RequestEnd::Wrong(format!("no answer at all: {error}")),
    };
    if answer.status != 200 || !answer.is_stream() {
        return not_taken(answer).await;
    }
    let mut reading = Reading::new(answer, 0);
    let last = match reading.until_end_of(room, nonce).await {
        Ok(Some(last)) => last,
        Ok(None) => return RequestEnd::Wrong("its stream ended without an end".to_owned()),
        Err(wrong) => return RequestEnd::Wrong(wrong),
    };
    match reading.answer.piece().await {
        Ok(None) => fate(&last),
        other => RequestEnd::Wrong(format!("after its end: {other:?}")),
    }
}

async fn not_taken(answer: Answer) -> RequestEnd {
    let status = answer.status;
    match answer.whole().await {
        Ok(text) => refused(status, &text),
        Err(error) => RequestEnd::Wrong(format!("{status}, then {error}")),
    }
}

fn fate(last: &Value) -> RequestEnd {
    if last["type"] == "llm:complete" { RequestEnd::Answered } else { RequestEnd::EndedByEvent }
}

/// Watches the room, then asks, and waits for the end in the room's stream.
async fn in_the_rooms_stream(room: &Room, nonce: Nonce, request: &Request) -> RequestEnd {
    let events = room.get(&format!("/rooms/{}/events", room.code));
    let mut reading = match http::send(room.address, &events).await {
        Ok(answer) if answer.status == 200 => Reading::new(answer, nonce.number),
        Ok(answer) => return RequestEnd::Wrong(format!("its watcher was told {}", answer.status)),
        Err(error) => return RequestEnd::Wrong(format!("its watcher was not answered: {error}")),
    };
    match http::send(room.address, request).await {
        Ok(answer) if answer.status == 202 => {}
        Ok(answer) => return not_taken(answer).await,
        Err(error) => return RequestEnd::Wrong(format!("no answer at all: {error}")),
    }
    match reading.until_end_of(room, nonce).await {
        Ok(Some(last)) => fate(&last),
        Err(wrong) => RequestEnd::Wrong(wrong),
        // Others keep this machine busy; it may lag, and comes back.
        Ok(None) if reading.lagged => {
            let coming_back = after_loss(room, nonce, &events, reading.last_id);
            timeout(MAY_HAVE_ENDED, coming_back).await.unwrap_or(RequestEnd::Missed)
        }
        Ok(None) => RequestEnd::Wrong("its watcher's stream ended".to_owned()),
    }
}

/// Comes back as often as it lags, until it sees the end.
async fn after_loss(
    room: &Room,
    nonce: Nonce,
    events: &Request,
    mut last_id: Option<u64>,
) -> RequestEnd {
    loop {
        let seen = last_id.unwrap_or_default().to_string();
        let again = events.clone().header("last-event-id", &seen);
        let mut reading = match http::send(room.address, &again).await {
            Ok(answer) if answer.status == 200 => Reading::after_loss(answer),
            _ => return RequestEnd::Wrong("its watcher could not come back".to_owned()),
        };
        match reading.until_end_of(room, nonce).await {
            Ok(Some(last)) => return fate(&last),
            Err(wrong) => return RequestEnd::Wrong(wrong),
            Ok(None) if reading.lagged => last_id = reading.last_id.or(last_id),
            Ok(None) => return RequestEnd::Wrong("its watcher's stream ended".to_owned()),
        }
    }
}

/// A reader of a stream of messages.
struct Reading {
    answer: Answer,
    frames: Frames,
    tokens: Tokens,
    last_id: Option<u64>,
    lagged: bool,
}

impl Reading {
    fn new(answer: Answer, since: u64) -> Self {
        let (frames, tokens) = (Frames::default(), Tokens::since(since));
        Self { answer, frames, tokens, last_id: None, lagged: false }
    }

    fn after_loss(answer: Answer) -> Self {
        Self::new(answer, u64::MAX)
    }

    /// Reads to the message that ends a request; nothing when the stream ends before.
    async fn until_end_of(&mut self, room: &Room, nonce: Nonce) -> Result<Option<Value>, String> {
        while let Some(piece) = self.answer.piece().await.map_err(|error| error.to_string())? {
            for frame in self.frames.feed(&piece)? {
                if let Some(last) = self.frame(room, nonce, frame)? {
                    return Ok(Some(last));
                }
            }
        }
        Ok(None)
    }

    fn frame(&mut self, room: &Room, nonce: Nonce, frame: Frame) -> Result<Option<Value>, String> {
        self.lagged |= frame.tells_of_loss();
        self.last_id = frame.id.or(self.last_id);
        let said = frame.data;
        if !belongs(room, &said) {
            return Err(format!("another room's: {said}"));
        }
        if said["requestId"].as_str() != Some(&nonce.text()) {
            return Ok(None);
        }
        match said["type"].as_str() {
            Some("llm:token") => self.tokens.token(room, &said).map(|()| None),
            Some("llm:complete" | "llm:error") => self.tokens.end(&said).map(|()| Some(said)),
            _ => Err(format!("no message of a request: {said}")),
        }
    }
}
