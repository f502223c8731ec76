//! Which end of a request is allowed. Pure.

use std::io;

use crate::{
    fleet::faults::{Deed, Fault, Part},
    tokens::{Api, Tokens},
};

/// How many servers there are; worker `n` is connected to server `n % SERVERS`.
pub(crate) const SERVERS: usize = 3;
pub(crate) const WORKERS: usize = 6;

/// Where the workers of a model are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// At every server.
    Everywhere,
    /// At this one only.
    At(usize),
}

impl Model {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Everywhere => "everywhere".to_owned(),
            Self::At(server) => format!("only-{server}"),
        }
    }
}

/// The request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentRequest {
    pub(crate) number: u64,
    pub(crate) api: Api,
    pub(crate) stream: bool,
    pub(crate) model: Model,
    /// The server that was asked.
    pub(crate) home: usize,
}

/// The outcome that a client saw.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// No answer began: the connection ended in this way.
    Nothing(io::ErrorKind),
    /// A status, as much of the body as came, and whether that is all of it.
    Answer { status: u16, text: String, is_whole: bool },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    /// Whole and right. `elsewhere`: by a worker of another server than the one that was asked.
    Answered {
        elsewhere: bool,
    },
    HungUp,
    /// A stream that ended with its API's error event.
    Ended,
    /// A connection that ended in the middle.
    Cut,
    /// An error with this status, in JSON and with words.
    Refused(u16),
    Wrong(String),
}

/// The word of which a worker's answers consist.
pub(crate) fn word(worker: usize) -> String {
    format!(" w{worker}")
}

/// How many words came, and of which worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) count: u64,
    pub(crate) worker: Option<usize>,
}

impl SentRequest {
    fn tokens(self) -> Tokens {
        Tokens::of(self.number)
    }

    /// The words in an answer, or in the part of it that came. An error if they are of several workers.
    pub(crate) fn words(self, text: &str) -> Result<Words, String> {
        let mut words = Words { count: 0, worker: None };
        for worker in 0..WORKERS {
            let word = if self.stream { format!("\"{}\"", word(worker)) } else { word(worker) };
            let count = text.matches(&word).count() as u64;
            if count > 0 && words.worker.is_some() {
                return Err(format!("the answer is glued together: {text:?}"));
            }
            if count > 0 {
                words = Words { count, worker: Some(worker) };
            }
        }
        Ok(words)
    }

    /// Judges the end of a request by what was out of order meanwhile.
    pub(crate) fn judge(self, outcome: &Outcome, faults: &[Fault]) -> RequestEnd {
        let end = self.end(outcome).unwrap_or_else(RequestEnd::Wrong);
        let worker = match outcome {
            Outcome::Answer { text, .. } => self.words(text).ok().and_then(|words| words.worker),
            Outcome::Nothing(_) => None,
        };
        match end {
            RequestEnd::Wrong(what) => RequestEnd::Wrong(format!("{self:?} ({faults:?}): {what}")),
            end if self.may(&end, worker, faults) => end,
            end => RequestEnd::Wrong(format!("{self:?} ({faults:?}): {end:?}, {outcome:?}")),
        }
    }

    fn end(self, outcome: &Outcome) -> Result<RequestEnd, String> {
        let (status, text) = match outcome {
            Outcome::Nothing(kind) if is_end(*kind) => return Ok(RequestEnd::Cut),
            Outcome::Nothing(kind) => return Err(format!("no answer: {kind}")),
            Outcome::Answer { is_whole: false, text, .. } => {
                return self.words(text).map(|_| RequestEnd::Cut);
            }
            Outcome::Answer { status, text, .. } => (*status, text),
        };
        match status {
            200 if self.stream => self.streamed(text),
            200 => self.whole(text),
            status => refused(status, text),
        }
    }

    fn whole(self, text: &str) -> Result<RequestEnd, String> {
        let words = self.words(text)?;
        let elsewhere = words.worker.is_some_and(|worker| worker % SERVERS != self.home);
        let right = match self.api {
            Api::Embeddings => text.contains("\"embedding\":[0.5]"),
            // Some APIs repeat the text.
            _ => words.count >= self.tokens().completion && words.worker.is_some(),
        };
        if right { Ok(RequestEnd::Answered { elsewhere }) } else { Err(format!("200 {text:?}")) }
    }

    fn streamed(self, text: &str) -> Result<RequestEnd, String> {
        let words = self.words(text)?;
        let elsewhere = words.worker.is_some_and(|worker| worker % SERVERS != self.home);
        let is_ended = text.contains(self.api.last());
        let is_error = text.contains("\"error\":{") || text.contains("event: error");
        match (is_ended, is_error) {
            (true, false) if words.count == self.tokens().completion => {
                Ok(RequestEnd::Answered { elsewhere })
            }
            (false, true) if words.count <= self.tokens().completion => Ok(RequestEnd::Ended),
            _ => Err(format!("a stream: {text:?}")),
        }
    }

    /// Whether a fault accounts for this end.
    fn may(self, end: &RequestEnd, worker: Option<usize>, faults: &[Fault]) -> bool {
        match end {
            RequestEnd::Answered { .. } | RequestEnd::HungUp => true,
            RequestEnd::Wrong(_) => false,
            RequestEnd::Cut if !self.stream => {
                faults.iter().any(|fault| self.is_lost_by(worker, *fault))
            }
            RequestEnd::Cut => faults.iter().any(|fault| self.is_home(*fault)),
            RequestEnd::Ended => faults.iter().any(|fault| self.is_lost_by(worker, *fault)),
            RequestEnd::Refused(_) => faults.iter().any(|fault| self.is_refused_by(*fault)),
        }
    }

    /// Whether it is a fault of the server that was asked.
    fn is_home(self, fault: Fault) -> bool {
        fault.part == Part::Server(self.home) && fault.deed != Deed::Restart
    }

    /// Whether an answer that had begun is lost by this fault.
    fn is_lost_by(self, worker: Option<usize>, fault: Fault) -> bool {
        let serving = worker.map(|worker| worker % SERVERS);
        let is_far = serving.is_none_or(|server| server != self.home);
        match fault.part {
            _ if fault.deed == Deed::Restart => false,
            Part::Server(server) => {
                server == self.home || serving.is_none_or(|serving| serving == server)
            }
            Part::Worker(lost) => worker.is_none_or(|worker| worker == lost),
            Part::Nats => is_far,
            Part::Way(server) => {
                is_far && (server == self.home || serving.is_none_or(|serving| serving == server))
            }
            Part::Postgres => false,
        }
    }

    /// Whether a request that has not begun may be refused for this fault: nobody is left to serve it.
    fn is_refused_by(self, fault: Fault) -> bool {
        let Model::At(owner) = self.model else { return self.is_home(fault) };
        match fault.part {
            _ if self.is_home(fault) => true,
            Part::Server(server) => server == owner,
            Part::Worker(worker) => worker % SERVERS == owner && fault.deed != Deed::Restart,
            Part::Nats => owner != self.home,
            Part::Way(server) => owner != self.home && (server == self.home || server == owner),
            Part::Postgres => false,
        }
    }
}

fn is_end(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, UnexpectedEof};
    matches!(kind, BrokenPipe | ConnectionRefused | ConnectionReset | UnexpectedEof)
}

/// An error that says in JSON what is wrong.
fn refused(status: u16, text: &str) -> Result<RequestEnd, String> {
    let body: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let says_why = body["error"]["message"].as_str().is_some_and(|why| !why.is_empty());
    match status {
        502..=504 if says_why => Ok(RequestEnd::Refused(status)),
        _ => Err(format!("{status} {text:?}")),
    }
}
