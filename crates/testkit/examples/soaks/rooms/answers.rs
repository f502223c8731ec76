//! The answer to a prompt follows from the prompt, so that every client knows what it has to get, and no two answers
//! are alike. A participant gives it in pieces cut anywhere, and now and then badly.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use testkit::{
    Random, TunnelAsk,
    lab::{Nonce, chat_stream, chat_whole, cut},
};
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinSet,
    time::sleep,
};

use crate::rooms::room::{Room, TEMPERATURE};

/// Frames of answers that wait to be sent.
const WAITING: usize = 16;

/// Ids of requests of others that are remembered.
const OVERHEARD: usize = 32;

/// The share of answers that fail before they begin, in their middle, and with a status of their own.
const FAILURES: f64 = 0.02;

/// The share of answers that also answer another participant's request.
const MEDDLING: f64 = 0.05;

/// Ids of requests on the tunnels of all rooms, each with its participant: no other participant should know them.
#[derive(Default)]
pub(crate) struct Overheard(Mutex<Vec<(String, String)>>);

enum Step {
    Start(u16, &'static str),
    Chunk(Vec<u8>),
    /// A chunk for another participant's request.
    Meddle(String),
    End,
    Fail,
}

/// The answers that a participant is giving.
pub(crate) struct Answers {
    whose: String,
    overheard: Arc<Overheard>,
    random: Random,
    frames: (Sender<Value>, Receiver<Value>),
    tasks: JoinSet<()>,
}

impl Answers {
    /// Of the participant of this id.
    pub(crate) fn new(whose: String, overheard: Arc<Overheard>, random: Random) -> Self {
        Self { whose, overheard, random, frames: mpsc::channel(WAITING), tasks: JoinSet::new() }
    }

    /// Begins to answer. Fails when the request is wrong.
    pub(crate) fn begin(&mut self, room: &Room, ask: TunnelAsk) -> Result<(), String> {
        let body = &ask.json["body"];
        let nonce = Nonce::in_chat(body).filter(|nonce| nonce.at == room.number);
        let Some(nonce) = nonce.filter(|_| is_complete(body)) else {
            return Err(format!("a participant of room {} was sent {}", room.number, ask.text));
        };
        let whole = match body["stream"] == true {
            true => ("text/event-stream", stream(nonce)),
            false => ("application/json", whole(nonce).to_string()),
        };
        let steps = self.steps(&ask.id, whole);
        let (random, frames) = (self.random.fork(), self.frames.0.clone());
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(answer(ask.id, steps, random, frames));
        Ok(())
    }

    pub(crate) async fn frame(&mut self) -> Value {
        self.frames.1.recv().await.expect("it has a sender itself")
    }

    fn steps(&mut self, id: &str, (kind, whole): (&'static str, String)) -> Vec<Step> {
        let random = &mut self.random;
        if random.chance(FAILURES) {
            return vec![Step::Fail];
        }
        if kind == "application/json" && random.chance(FAILURES) {
            let error = json!({"error": {"message": "the model is out of order"}}).to_string();
            return vec![
                Step::Start(500, "application/json"),
                Step::Chunk(error.into()),
                Step::End,
            ];
        }
        let mut steps = vec![Step::Start(200, kind)];
        steps.extend(cut(whole.as_bytes(), 400, random).into_iter().map(Step::Chunk));
        if random.chance(FAILURES) {
            steps.truncate(1 + random.below(steps.len() as u64) as usize);
            steps.push(Step::Fail);
        } else {
            steps.push(Step::End);
        }
        let other = self.overheard.exchange(&self.whose, id, random);
        if let Some(other) = other.filter(|_| random.chance(MEDDLING)) {
            let at = random.below(steps.len() as u64) as usize;
            steps.insert(at, Step::Meddle(other));
        }
        steps
    }
}

/// The pieces of text of a prompt's answer.
pub(crate) fn pieces(nonce: Nonce) -> impl Iterator<Item = String> {
    nonce.pieces(String::new())
}

pub(crate) fn stream(nonce: Nonce) -> String {
    chat_stream(pieces(nonce), &json!({}))
}

pub(crate) fn whole(nonce: Nonce) -> Value {
    chat_whole(&pieces(nonce).collect::<String>(), &json!({}))
}

/// Whether a request has the model's real name and the defaults of its room.
pub(crate) fn is_complete(body: &Value) -> bool {
    let instructed = body["messages"][0]["role"] == "system";
    body["model"] == "m" && body["temperature"] == TEMPERATURE && instructed
}

async fn answer(id: String, steps: Vec<Step>, mut random: Random, frames: Sender<Value>) {
    for step in steps {
        sleep(Duration::from_millis(random.below(25))).await;
        if frames.send(frame(&id, step)).await.is_err() {
            return;
        }
    }
}

fn frame(id: &str, step: Step) -> Value {
    match step {
        Step::Start(status, kind) => json!({
            "type": "tunnel.response.start", "requestId": id, "status": status,
            "headers": {"content-type": kind},
        }),
        Step::Chunk(bytes) => chunk(id, &bytes),
        Step::Meddle(other) => chunk(&other, b"data: this is somebody else's\n\n"),
        Step::End => json!({"type": "tunnel.response.end", "requestId": id}),
        Step::Fail => json!({
            "type": "tunnel.response.error", "requestId": id, "stage": "proxy",
            "message": "the backend broke",
        }),
    }
}

fn chunk(id: &str, bytes: &[u8]) -> Value {
    let chunk = BASE64_STANDARD.encode(bytes);
    json!({"type": "tunnel.response.chunk", "requestId": id, "chunk": chunk})
}

impl Overheard {
    /// Adds an id, and returns one of another participant.
    fn exchange(&self, whose: &str, id: &str, random: &mut Random) -> Option<String> {
        let mut ids = self.0.lock().expect("no panic");
        let some = random.below(ids.len().max(1) as u64) as usize;
        let other = ids.get(some).filter(|(holder, _)| holder != whose).map(|(_, id)| id.clone());
        ids.push((whose.to_owned(), id.to_owned()));
        if ids.len() > OVERHEARD {
            ids.remove(0);
        }
        other
    }
}
