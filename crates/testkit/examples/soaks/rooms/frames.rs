//! Streams of events, read strictly.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use testkit::lab::Nonce;

use crate::rooms::{answers::pieces, room::Room};

#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub(crate) id: Option<u64>,
    pub(crate) event: Option<String>,
    /// Null in a comment.
    pub(crate) data: Value,
    pub(crate) text: String,
}

/// The frames of a stream, as its bytes come.
#[derive(Debug, Default)]
pub(crate) struct Frames(Vec<u8>);

impl Frames {
    /// Takes in bytes; the frames that are whole now.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, String> {
        self.0.extend_from_slice(bytes);
        let mut frames = Vec::new();
        while let Some(end) = self.0.windows(2).position(|two| two == b"\n\n") {
            let frame: Vec<u8> = self.0.drain(..end + 2).collect();
            let text = String::from_utf8(frame).map_err(|error| error.to_string())?;
            frames.push(Frame::parse(text)?);
        }
        Ok(frames)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.0.is_empty()
    }
}

impl Frame {
    fn parse(text: String) -> Result<Self, String> {
        let mut frame = Self::default();
        for line in text.trim_end().split('\n') {
            match line.split_once(": ") {
                Some(("id", id)) => frame.id = Some(id.parse().map_err(|_| text.clone())?),
                Some(("event", event)) => frame.event = Some(event.to_owned()),
                Some(("data", data)) => {
                    frame.data = serde_json::from_str(data).map_err(|_| text.clone())?;
                }
                Some(("", _)) => {}
                _ => return Err(format!("no frame: {text:?}")),
            }
        }
        Ok(Self { text, ..frame })
    }

    /// Whether it says that events were missed.
    pub(crate) fn tells_of_loss(&self) -> bool {
        let is_message = self.data["type"] == "room:error";
        (self.data.is_null() || is_message) && self.text.contains("missed")
    }
}

/// The tokens of a room's `llm:request`s, as a watcher sees them.
#[derive(Debug, Default)]
pub(crate) struct Tokens {
    /// The next number of each that is not at its end.
    pub(crate) open: HashMap<String, u64>,
    ended: HashSet<String>,
    /// The first number that must be whole. A lower one may have begun before the watcher came.
    since: u64,
}

impl Tokens {
    /// For a watcher that sees all that begins from now on.
    pub(crate) fn since(since: u64) -> Self {
        Self { since, ..Self::default() }
    }

    /// A token. What is wrong with it, if anything is.
    pub(crate) fn token(&mut self, room: &Room, token: &Value) -> Result<(), String> {
        let id = token["requestId"].as_str().unwrap_or_default();
        let nonce = Nonce::parse(id).filter(|nonce| nonce.at == room.number);
        let nonce = nonce.ok_or_else(|| format!("a token of nobody in the room: {token}"))?;
        let seq = token["seq"].as_u64().ok_or_else(|| format!("a token without seq: {token}"))?;
        let next = self.open.get(id).copied();
        let is_next = match next {
            Some(next) => seq == next,
            None => seq == 0 || nonce.number < self.since,
        };
        if !is_next || self.ended.contains(id) {
            let ended = self.ended.contains(id);
            return Err(format!("{token} where {next:?} is next (ended: {ended})"));
        }
        let piece = pieces(nonce).nth(usize::try_from(seq).unwrap_or(usize::MAX));
        if token["token"].as_str() != piece.as_deref() {
            return Err(format!("{token} where {piece:?} is its text"));
        }
        self.open.insert(id.to_owned(), seq + 1);
        Ok(())
    }

    pub(crate) fn end(&mut self, message: &Value) -> Result<(), String> {
        let id = message["requestId"].as_str().unwrap_or_default();
        let Some(nonce) = Nonce::parse(id) else { return Ok(()) };
        let seen = self.open.remove(id);
        let whole = pieces(nonce).count() as u64;
        let complete = message["type"] == "llm:complete";
        let short = seen.unwrap_or(0) != whole && nonce.number >= self.since;
        if !self.ended.insert(id.to_owned()) {
            return Err(format!("it ended twice: {message}"));
        }
        if complete && short { Err(format!("after {seen:?} tokens: {message}")) } else { Ok(()) }
    }
}

/// Whether what a message or an event names is in a room.
pub(crate) fn belongs(room: &Room, said: &Value) -> bool {
    let participant = [&said["participantId"], &said["participant"]["id"]];
    let mut ids = participant.into_iter().filter_map(Value::as_str).filter(|id| !id.is_empty());
    let request = said["requestId"].as_str().and_then(Nonce::parse);
    ids.all(|id| room.owns(id)) && request.is_none_or(|nonce| nonce.at == room.number)
}
