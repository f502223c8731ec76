//! The backend of a machine: it answers by the script, in pieces cut anywhere, and looks at what it is
//! asked.

use std::{sync::Mutex, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Gate, MockBackend, Random, Received, Reply,
    lab::{Nonce, cut},
};

use crate::mesh::{
    account::Report,
    plan::{self, Model},
    script::{self, Manner},
};

const CHAT: &str = "/v1/chat/completions";

/// The longest that it thinks before each piece of an answer, in milliseconds.
const THINKS: u64 = 30;

/// The longest piece of an answer, in bytes, and of one in ten.
const PIECE: (u64, u64) = (400, 20);

/// A backend of the machine of this number.
pub(crate) async fn start(machine: usize, random: Random, report: &Report) -> MockBackend {
    let models = Model::of(machine);
    let models: Vec<_> = models.iter().map(String::as_str).collect();
    let backend = MockBackend::start(&models).await;
    backend.answers_only(&[CHAT]);
    let (random, report) = (Mutex::new(random), report.clone());
    backend.answer_with(move |received| {
        let mut random = random.lock().expect("no panic").fork();
        match check(machine, received) {
            Ok(nonce) => reply(nonce, machine, &received.json(), &mut random),
            Err(wrong) => {
                report.wrong(wrong);
                Reply::json(500, &json!({"error": {"message": "this was not to be asked here"}}))
            }
        }
    });
    backend
}

/// Checks a request: it must be as it was sent, be for a model that is here, and have come over one link at most.
fn check(machine: usize, received: &Received) -> Result<Nonce, String> {
    let body = received.json();
    let nonce = script::asked(&body);
    let nonce =
        nonce.ok_or_else(|| format!("machine {machine} was asked something else: {body}"))?;
    let known = Model::of(machine).iter().any(|model| body["model"] == **model);
    if !known {
        return Err(format!("machine {machine} was asked for {}", body["model"]));
    }
    if nonce.at != machine && !plan::linked(nonce.at, machine) {
        let text = nonce.text();
        return Err(format!("{text} came to machine {machine}, to which its own has no link"));
    }
    let marked = received.header("x-warren-route") == Some("local-only");
    if nonce.at != machine && !marked {
        let head = &received.head;
        return Err(format!("{} of a peer came to a backend unmarked: {head:?}", nonce.text()));
    }
    Ok(nonce)
}

fn reply(nonce: Nonce, machine: usize, body: &Value, random: &mut Random) -> Reply {
    let failure = |status, why: &str| Reply::json(status, &json!({"error": {"message": why}}));
    match Manner::of(nonce) {
        Manner::Errs => failure(500, OUT_OF_ORDER),
        Manner::Refuses => failure(400, TOO_LONG),
        Manner::Sound => answer(nonce, machine, body, random),
        Manner::Breaks => answer(nonce, machine, body, random).broken(),
        Manner::Stalls => answer(nonce, machine, body, random).stalled(),
    }
}

pub(crate) const OUT_OF_ORDER: &str = "the model is out of order";

pub(crate) const TOO_LONG: &str = "this prompt is too long";

fn answer(nonce: Nonce, machine: usize, body: &Value, random: &mut Random) -> Reply {
    let model = &body["model"];
    let stream = body["stream"] == true;
    let kind = if stream { "text/event-stream" } else { "application/json" };
    let whole = script::answer(nonce, machine, model, stream);
    // A faulty answer breaks in the middle: the rest is never sent.
    let half = if Manner::of(nonce) == Manner::Sound { whole.len() } else { whole.len() / 2 };
    let longest = if random.chance(0.1) { PIECE.1 } else { PIECE.0 };
    let pieces = cut(&whole.as_bytes()[..half], longest, random);
    let reply = Reply::stream_with(200, &[("content-type", kind)], pieces, &Gate::opened());
    reply.thinking(Duration::from_millis(random.below(THINKS)))
}
