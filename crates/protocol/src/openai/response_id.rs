//! The id of a response, read from the beginning of an answer that passes.

use std::fmt;

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor},
};

/// How much of an answer is looked at, in bytes.
const LOOKED_AT: usize = 64 * 1024;

/// Finds the id of a response of the Responses API in the first bytes of its answer: in the answer
/// itself if it is one JSON object, or in the first event of a stream (`response.created`).
#[derive(Debug, Clone, Default)]
pub struct ResponseIdReader {
    /// The bytes so far.
    begun: Vec<u8>,
    /// How many of these bytes were searched without success.
    tried: usize,
    done: bool,
}

impl ResponseIdReader {
    /// Reads the next bytes. Returns the id once, as soon as it is complete.
    pub fn feed(&mut self, chunk: &[u8]) -> Option<String> {
        if self.done {
            return None;
        }
        let left = LOOKED_AT - self.begun.len();
        self.begun.extend_from_slice(&chunk[..chunk.len().min(left)]);
        let is_full = self.begun.len() == LOOKED_AT;
        // Searches again only when twice as much has arrived, so that small pieces cost no more
        // than large ones.
        let is_more = self.begun.len() >= self.tried * 2;
        let found = if is_more || is_full { self.look() } else { None };
        self.stop_if(found.is_some() || is_full);
        found
    }

    /// Ends the answer. Returns the id, if it was not returned yet.
    pub fn end(&mut self) -> Option<String> {
        let found = if self.done { None } else { self.look() };
        self.stop_if(true);
        found
    }

    fn look(&mut self) -> Option<String> {
        self.tried = self.begun.len();
        // Before the first object of a stream there are only names of event fields.
        let start = self.begun.iter().position(|&byte| byte == b'{')?;
        let mut found = None;
        let mut reader = serde_json::Deserializer::from_slice(&self.begun[start..]);
        // The visitor stops reading with an error once it has the id, so the result means nothing.
        let _ = Object { found: &mut found, inner: false }.deserialize(&mut reader);
        found
    }

    fn stop_if(&mut self, done: bool) {
        if done {
            self.done = true;
            self.begun = Vec::new();
        }
    }
}

/// A response, or an event that has one.
struct Object<'a> {
    found: &'a mut Option<String>,
    /// Whether it is in an event.
    inner: bool,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Id,
    Response,
    #[serde(other)]
    Other,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                Key::Id => {
                    *self.found = Some(map.next_value()?);
                    return Err(A::Error::custom("found"));
                }
                Key::Response if !self.inner => {
                    map.next_value_seed(Object { found: &mut *self.found, inner: true })?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(answer: &str, piece: usize) -> Option<String> {
        let mut reader = ResponseIdReader::default();
        let pieces = answer.as_bytes().chunks(piece);
        let found: Vec<String> = pieces.filter_map(|piece| reader.feed(piece)).collect();
        assert!(found.len() <= 1, "told once");
        found.into_iter().next().or_else(|| reader.end())
    }

    const WHOLE: &str = r#"{"object":"response","error":{"id":"no"},"id":"resp_1","output":[]}"#;
    const STREAM: &str = "event: response.created\ndata: {\"type\":\"response.created\",\
        \"response\":{\"object\":\"response\",\"id\":\"resp_1\",\"output\":[]}}\n\n\
        event: response.output_item.added\ndata: {\"item\":{\"id\":\"msg_1\"}}\n\n";

    #[test]
    fn an_answer_without_an_id_has_none() {
        for answer in
            ["", "x", "{", "[]", "{}", r#"{"id":1}"#, r#"{"response":{"response":{"id":"a"}}}"#]
        {
            assert_eq!(found(answer, 1), None, "{answer}");
        }
    }

    #[test]
    fn only_the_beginning_is_kept_and_looked_at() {
        let late = format!(r#"{{"x":"{}","id":"resp_1"}}"#, "x".repeat(LOOKED_AT));
        assert_eq!(found(&late, 1000), None);
        let mut reader = ResponseIdReader::default();
        for _ in 0..100 {
            assert_eq!(reader.feed(&[b'x'; 10_000]), None);
        }
        assert!(reader.done && reader.begun.capacity() == 0);
    }

    proptest! {
        #[test]
        fn the_id_is_found_however_the_answer_is_cut(piece in 1usize..200) {
            prop_assert_eq!(found(WHOLE, piece), Some("resp_1".to_owned()));
            prop_assert_eq!(found(STREAM, piece), Some("resp_1".to_owned()));
        }

        #[test]
        fn any_bytes_are_read(answer: Vec<u8>) {
            let mut reader = ResponseIdReader::default();
            reader.feed(&answer);
            reader.end();
        }
    }
}
