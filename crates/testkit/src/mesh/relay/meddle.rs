//! The deeds of a hostile relay to the data of relay sessions.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

/// How a relay treats every `relayData` that passes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Hostile {
    #[default]
    Honest,
    /// A bit of its last byte is changed.
    Flip,
    Truncate,
    Replay,
    /// It is held back until after the next one.
    Reorder,
    Lose,
    From(String),
    Session(String),
}

/// How it meddles, and the messages that it holds back.
#[derive(Debug, Default)]
pub(super) struct Meddler {
    pub(super) how: Hostile,
    held: Option<Value>,
}

impl Meddler {
    /// The messages that are passed on instead of a `relayData`.
    pub(super) fn pass(&mut self, mut body: Value) -> Vec<Value> {
        match &self.how {
            Hostile::Honest => {}
            Hostile::Flip => change(&mut body, |bytes| {
                bytes.last_mut().into_iter().for_each(|last| *last ^= 1);
            }),
            Hostile::Truncate => change(&mut body, |bytes| bytes.truncate(bytes.len().max(1) - 1)),
            Hostile::Replay => return vec![body.clone(), body],
            Hostile::Lose => return Vec::new(),
            Hostile::From(node) => body["fromNodeID"] = json!(node),
            Hostile::Session(session) => body["sessionID"] = json!(session),
            Hostile::Reorder => return self.reorder(body),
        }
        self.held.take().into_iter().chain([body]).collect()
    }

    fn reorder(&mut self, body: Value) -> Vec<Value> {
        match self.held.take() {
            Some(held) => vec![body, held],
            None => {
                self.held = Some(body);
                Vec::new()
            }
        }
    }
}

fn change(body: &mut Value, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = bytes(body);
    change(&mut bytes);
    body["data"] = json!(BASE64_STANDARD.encode(bytes));
}

pub(super) fn bytes(body: &Value) -> Vec<u8> {
    body["data"].as_str().and_then(|data| BASE64_STANDARD.decode(data).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(how: Hostile) -> Vec<Vec<u8>> {
        let mut meddler = Meddler { how, held: None };
        let bodies = ["one", "two"].map(|text| json!({"data": BASE64_STANDARD.encode(text)}));
        bodies.into_iter().flat_map(|body| meddler.pass(body)).map(|body| bytes(&body)).collect()
    }

    #[test]
    fn each_way_to_meddle_does_what_it_says() {
        assert_eq!(passed(Hostile::Honest), [b"one", b"two"]);
        assert_eq!(passed(Hostile::Flip), [b"ond", b"twn"]);
        assert_eq!(passed(Hostile::Truncate), [b"on", b"tw"]);
        assert_eq!(passed(Hostile::Replay), [b"one", b"one", b"two", b"two"]);
        assert_eq!(passed(Hostile::Reorder), [b"two", b"one"]);
        assert!(passed(Hostile::Lose).is_empty());
        let mut meddler = Meddler { how: Hostile::From("x".to_owned()), held: None };
        assert_eq!(meddler.pass(json!({}))[0]["fromNodeID"], "x");
    }
}
