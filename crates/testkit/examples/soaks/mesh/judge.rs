//! Whether an answer is right. Pure.

use std::io;

use serde_json::Value;
use testkit::lab::{Nonce, without_comments};

use crate::mesh::{
    backend::{OUT_OF_ORDER, TOO_LONG},
    machine::MachineState,
    plan::{self, MACHINES, Model},
    script::{self, Manner},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// Answered whole and right, by this machine.
    Answered(usize),
    /// Its client hung up, as it was meant to.
    HungUp,
    /// The request failed after the answer had begun: the stream ended with an error.
    EndedByEvent,
    /// The same of an answer that is no stream: the connection was cut.
    Cut,
    /// The machine that was asked has ended meanwhile.
    Gone,
    /// Refused, or failed before an answer began, with this status and an error that says why.
    Refused(u16, String),
    Wrong(String),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SentRequest {
    pub(crate) nonce: Nonce,
    pub(crate) model: Model,
    pub(crate) stream: bool,
    /// The route that it asks for, if any.
    pub(crate) route: Option<&'static str>,
}

/// The end of a request, as the client saw it.
#[derive(Debug)]
pub(crate) enum Outcome {
    Nothing(io::Error),
    /// A status, as much of the body as came, and whether that is all of it.
    Answer(u16, String, io::Result<()>),
}

/// Judges the end of a request, given its machine's state before and after.
pub(crate) fn judge(
    ask: SentRequest,
    outcome: Outcome,
    before: MachineState,
    after: MachineState,
) -> RequestEnd {
    let has = Happened::between(before, after);
    let fate = ask.of(outcome, has);
    let fate = if ask.may(&fate, has) { fate } else { RequestEnd::Wrong(format!("{fate:?}")) };
    match fate {
        RequestEnd::Wrong(what) => RequestEnd::Wrong(format!("{ask:?} ({has:?}): {what}")),
        fate => fate,
    }
}

/// The events of the machine that was asked, while it was.
#[derive(Debug, Clone, Copy)]
struct Happened {
    killed: bool,
    stopped: bool,
    anything: bool,
}

impl Happened {
    fn between(before: MachineState, after: MachineState) -> Self {
        let killed = before.killed != after.killed;
        let stopped = before.stopped != after.stopped;
        // An odd number: it is frozen.
        let frozen = before.frozen != after.frozen || !after.frozen.is_multiple_of(2);
        Self { killed, stopped, anything: killed || stopped || frozen }
    }
}

impl SentRequest {
    fn of(self, outcome: Outcome, has: Happened) -> RequestEnd {
        match outcome {
            Outcome::Nothing(_) if has.killed || has.stopped => RequestEnd::Gone,
            // Its head and the break came at once: the head was never written.
            Outcome::Nothing(error) if self.may_be_cut() && is_end(&error) => RequestEnd::Cut,
            Outcome::Nothing(error) => RequestEnd::Wrong(format!("no answer at all: {error}")),
            Outcome::Answer(_, _, Err(_)) if has.killed => RequestEnd::Gone,
            Outcome::Answer(_, _, Err(_)) if self.may_be_cut() => RequestEnd::Cut,
            // The machine has drained for as long as it is configured to.
            Outcome::Answer(_, _, Err(_)) if has.stopped && !self.stream => RequestEnd::Gone,
            Outcome::Answer(status, text, Err(error)) => {
                RequestEnd::Wrong(format!("{status}, cut with {error}: {text:?}"))
            }
            Outcome::Answer(200, text, Ok(())) if self.stream => self.streamed(&text),
            Outcome::Answer(200, text, Ok(())) => self.whole(&text),
            Outcome::Answer(status, text, Ok(())) => self.refused(status, &text),
        }
    }

    /// An answer of a backend of this machine passes as it comes, and so does its break.
    fn may_be_cut(self) -> bool {
        let breaks = matches!(Manner::of(self.nonce), Manner::Breaks | Manner::Stalls);
        breaks && !self.stream && self.model.is_at(self.nonce.at)
    }

    /// Whether the request may end like this.
    fn may(self, fate: &RequestEnd, has: Happened) -> bool {
        if let RequestEnd::Answered(by) = fate {
            return Manner::of(self.nonce) == Manner::Sound && self.may_reach(*by);
        }
        if has.anything || matches!(fate, RequestEnd::HungUp | RequestEnd::Wrong(_)) {
            return true;
        }
        match self.must() {
            // The job waits for a model that a peer has served before.
            Some(Must::BeNotFound) => matches!(fate, RequestEnd::Refused(404 | 504, _)),
            // It may wait for its turn for too long.
            Some(Must::BeAnswered) => matches!(fate, RequestEnd::Refused(429 | 504, _)),
            None => true,
        }
    }

    /// Whether this machine may answer it.
    pub(crate) fn may_reach(self, by: usize) -> bool {
        let asked = self.nonce.at;
        let local = self.route == Some("local-only");
        self.model.is_at(by) && (by == asked || !local && plan::linked(asked, by))
    }

    /// The end that it must have while its machine runs, whatever happens to the others.
    fn must(self) -> Option<Must> {
        let here = self.model.is_at(self.nonce.at);
        match (0..MACHINES).any(|machine| self.may_reach(machine)) {
            false => Some(Must::BeNotFound),
            true if !here || self.route != Some("local-only") => None,
            true => (Manner::of(self.nonce) == Manner::Sound).then_some(Must::BeAnswered),
        }
    }

    fn whole(self, text: &str) -> RequestEnd {
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let choice = &body["choices"][0];
        let content = choice["message"]["content"].as_str().unwrap_or_default();
        let is_one = body["object"] == "chat.completion" && body["model"] == *self.model.name();
        match self.by(content, true) {
            Some(by) if is_one && choice["finish_reason"] == "stop" => RequestEnd::Answered(by),
            _ => RequestEnd::Wrong(format!("200 {text:?}")),
        }
    }

    fn streamed(self, text: &str) -> RequestEnd {
        // Signs of life stand between events, while a peer is frozen.
        match Read::of(&without_comments(text), &self.model.name()) {
            Some(Read { content, finished: true, last: Last::Done, .. }) => {
                let by = self.by(&content, true);
                by.map_or_else(
                    || RequestEnd::Wrong(format!("a stream: {text:?}")),
                    RequestEnd::Answered,
                )
            }
            Some(Read { content, last: Last::Error, .. }) if self.by(&content, false).is_some() => {
                RequestEnd::EndedByEvent
            }
            _ => RequestEnd::Wrong(format!("a stream: {text:?}")),
        }
    }

    /// The machine whose answer this is, or the beginning of it.
    fn by(self, content: &str, whole: bool) -> Option<usize> {
        (0..MACHINES).find(|machine| {
            let answer = script::pieces(self.nonce, *machine).collect::<String>();
            if whole { answer == content } else { answer.starts_with(content) }
        })
    }

    /// A refusal, judged by its status and its body.
    fn refused(self, status: u16, text: &str) -> RequestEnd {
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let own = match (Manner::of(self.nonce), status) {
            (Manner::Errs, 500) => text.contains(OUT_OF_ORDER),
            (Manner::Refuses, 400) => text.contains(TOO_LONG),
            _ => matches!(status, 404 | 429 | 502..=504),
        };
        match body["error"]["message"].as_str().filter(|why| own && !why.is_empty()) {
            Some(why) => RequestEnd::Refused(status, why.to_owned()),
            None => RequestEnd::Wrong(format!("{status} {text:?}")),
        }
    }
}

/// The required outcome of a request.
enum Must {
    BeAnswered,
    BeNotFound,
}

#[derive(Debug, PartialEq, Eq)]
enum Last {
    Done,
    Error,
    Nothing,
}

/// A stream that was read strictly.
#[derive(Debug)]
struct Read {
    content: String,
    /// Whether a chunk said why it stops.
    finished: bool,
    /// Whether an event was cut: only the event that ends the stream can follow.
    half: bool,
    last: Last,
}

impl Read {
    /// `None` if it is not the answer of a model of this name.
    fn of(text: &str, model: &str) -> Option<Self> {
        let content = String::new();
        let mut read = Self { content, finished: false, half: false, last: Last::Nothing };
        for event in text.strip_suffix("\n\n")?.split("\n\n") {
            read.event(event, model)?;
        }
        Some(read)
    }

    fn event(&mut self, event: &str, model: &str) -> Option<()> {
        let data = event.strip_prefix("data: ");
        let chunk = data.and_then(|data| serde_json::from_str::<Value>(data).ok());
        match (data, chunk) {
            _ if self.last != Last::Nothing => return None,
            (_, Some(chunk)) if !chunk["error"]["message"].is_null() => self.last = Last::Error,
            _ if self.half => return None,
            (Some("[DONE]"), _) => self.last = Last::Done,
            (_, Some(chunk)) => self.chunk(&chunk, model)?,
            (_, None) => self.half = true,
        }
        Some(())
    }

    fn chunk(&mut self, chunk: &Value, model: &str) -> Option<()> {
        let choice = &chunk["choices"][0];
        let well = !self.finished && chunk["model"] == model && choice["index"] == 0;
        self.content += choice["delta"]["content"].as_str().unwrap_or_default();
        self.finished = choice["finish_reason"] == "stop";
        well.then_some(())
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
}
