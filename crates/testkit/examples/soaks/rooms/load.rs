//! Clients of the rooms' chats.

use std::{
    io::{self, ErrorKind},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};
use testkit::{
    Random, Request,
    lab::{
        Nonce,
        http::{self, Answer},
        without_comments,
    },
};
use tokio::time::{Instant, sleep, timeout};

use crate::rooms::{
    HANGS,
    account::{Report, RequestEnd},
    answers, messages,
    room::Room,
};

pub(crate) const HANG_UPS: f64 = 0.1;

/// The longest that a client of chats thinks between two requests, in milliseconds; others think longer.
const THINKS: u64 = 100;

/// The selector of a request: any participant, a model, or a participant that is or was there.
pub(crate) fn selector(room: &Room, random: &mut Random) -> String {
    let fixed = ["*", "any", "model:m", "m"];
    let some = random.below(6) as usize;
    match fixed.get(some) {
        Some(selector) => (*selector).to_owned(),
        None => room.somebody(random).unwrap_or_else(|| "*".to_owned()),
    }
}

/// The kind of a client's request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Chat,
    Message,
}

/// One client: request after request, in any of the rooms.
pub(crate) async fn client(
    kind: Kind,
    rooms: Vec<Arc<Room>>,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    while Instant::now() < until {
        let room = &rooms[random.below(rooms.len() as u64) as usize];
        let (begun, nonce) = (Instant::now(), room.nonce());
        let asking = async {
            match kind {
                Kind::Chat => ask(room, nonce, &mut random).await,
                Kind::Message => messages::ask(room, nonce, &mut random).await,
            }
        };
        let end = timeout(HANGS, asking).await;
        let hangs = |_| RequestEnd::Wrong(format!("the {kind:?} {} hangs", nonce.text()));
        let (end, took) = (end.unwrap_or_else(hangs), begun.elapsed());
        let thinks = match kind {
            Kind::Chat => THINKS,
            Kind::Message => 3 * THINKS,
        };
        report.check(|tally| tally.of(kind).add(end, took));
        sleep(Duration::from_millis(random.below(thinks))).await;
    }
}

async fn ask(room: &Room, nonce: Nonce, random: &mut Random) -> RequestEnd {
    let stream = random.chance(0.5);
    let model = selector(room, random);
    if random.chance(HANG_UPS) {
        return hang_up(room, &request(room, nonce, &model, stream), random).await;
    }
    chat(room, nonce, &model, stream).await
}

fn request(room: &Room, nonce: Nonce, model: &str, stream: bool) -> Request {
    let message = json!({"role": "user", "content": nonce.text()});
    let body = json!({"model": model, "stream": stream, "messages": [message]});
    room.post("/v1/chat/completions", &body)
}

/// Asks, and reads the answer to its end.
pub(crate) async fn chat(room: &Room, nonce: Nonce, model: &str, stream: bool) -> RequestEnd {
    let request = request(room, nonce, model, stream);
    let fate = match http::send(room.address, &request).await {
        Ok(answer) if answer.status == 200 && stream => judge_stream(nonce, answer).await,
        Ok(answer) => judge(nonce, answer).await,
        // Its head and the break came at once: the head was never written.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof && !stream => RequestEnd::Cut,
        Err(error) => RequestEnd::Wrong(format!("no answer at all: {error}")),
    };
    named(fate, nonce, model)
}

/// Names the request in a wrong end.
pub(crate) fn named(fate: RequestEnd, nonce: Nonce, asked: &str) -> RequestEnd {
    match fate {
        RequestEnd::Wrong(what) => {
            RequestEnd::Wrong(format!("{} to {asked}: {what}", nonce.text()))
        }
        fate => fate,
    }
}

/// Reads for a while, then drops the connection, wherever the answer is.
pub(crate) async fn hang_up(room: &Room, request: &Request, random: &mut Random) -> RequestEnd {
    let patience = Duration::from_millis(random.below(300));
    let reading = async {
        // The end does not matter: the client has left.
        let _ended = http::send(room.address, request).await?.whole().await;
        io::Result::Ok(())
    };
    let _left = timeout(patience, reading).await;
    RequestEnd::HungUp
}

async fn judge(nonce: Nonce, answer: Answer) -> RequestEnd {
    let status = answer.status;
    match answer.whole().await {
        Ok(text) => judge_whole(nonce, status, &text),
        Err(_) => RequestEnd::Cut,
    }
}

fn judge_whole(nonce: Nonce, status: u16, text: &str) -> RequestEnd {
    let is_whole =
        serde_json::from_str::<Value>(text).is_ok_and(|body| body == answers::whole(nonce));
    if status == 200 && is_whole { RequestEnd::Answered } else { refused(status, text) }
}

/// A refusal, judged by its status and its body. Nobody is there, the queue is full, the
/// model is out of order, its participant failed or was lost, or it took too long; nothing else is
/// a reason.
pub(crate) fn refused(status: u16, text: &str) -> RequestEnd {
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    match status {
        404 | 429 | 500 | 502..=504 if !body["error"].is_null() => RequestEnd::Refused(status),
        _ => RequestEnd::Wrong(format!("{status} {text:?}")),
    }
}

async fn judge_stream(nonce: Nonce, answer: Answer) -> RequestEnd {
    let text = match answer.whole().await {
        // Signs of life stand between events, while a participant is frozen.
        Ok(text) => without_comments(&text),
        Err(error) => return RequestEnd::Wrong(format!("a stream was cut: {error}")),
    };
    let whole = answers::stream(nonce);
    if text == whole {
        return RequestEnd::Answered;
    }
    // A beginning of the stream as it should be, and one event that ends it. An event that was cut
    // in its middle is ended first.
    let ended = text.rsplit_once("data: {\"error\":").is_some_and(|(begun, event)| {
        let is_beginning = whole.starts_with(begun) || whole.starts_with(begun.trim_end());
        is_beginning && event.ends_with("}\n\n")
    });
    if ended { RequestEnd::EndedByEvent } else { RequestEnd::Wrong(format!("a stream: {text:?}")) }
}
