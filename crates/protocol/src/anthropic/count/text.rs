//! Counts a value by its text: a string as it is, anything else as its shortest JSON.

use std::fmt::{self, Write};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::Number;

use crate::{
    json::escaped_len,
    usage::{Tally, estimate_tokens},
};

/// How many tokens the text of a value has. `null` has none.
pub(super) struct Text {
    pub(super) tokens: u64,
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut tally = Tally::default();
        let alone = deserializer.deserialize_any(Json { tally: &mut tally, is_whole: true })?;
        Ok(Self { tokens: alone.unwrap_or(tally.tokens()) })
    }
}

/// Adds a value's JSON to a tally, or reports the count to use instead.
struct Json<'a> {
    tally: &'a mut Tally,
    /// Whether the value stands alone, and is not part of another one.
    is_whole: bool,
}

impl Json<'_> {
    fn add<E>(self, text: impl fmt::Display) -> Result<Option<u64>, E> {
        // Writing to a tally cannot fail.
        let _ = write!(Adding(self.tally), "{text}");
        Ok(None)
    }

    fn part(&mut self) -> Json<'_> {
        Json { tally: self.tally, is_whole: false }
    }
}

impl<'de> DeserializeSeed<'de> for Json<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self).map(drop)
    }
}

impl<'de> Visitor<'de> for Json<'_> {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<u64>, E> {
        if self.is_whole { Ok(Some(0)) } else { self.add("null") }
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Option<u64>, E> {
        self.add(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Option<u64>, E> {
        self.add(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Option<u64>, E> {
        self.add(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Option<u64>, E> {
        match Number::from_f64(value) {
            Some(number) => self.add(number),
            None => self.add("null"),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Option<u64>, E> {
        if self.is_whole {
            return Ok(Some(estimate_tokens(text)));
        }
        self.tally.add(text);
        self.tally.add_ascii(2 + (escaped_len(text) - text.len()) as u64);
        Ok(None)
    }

    fn visit_seq<S: SeqAccess<'de>>(mut self, mut list: S) -> Result<Option<u64>, S::Error> {
        let mut parts = 0;
        while list.next_element_seed(self.part())?.is_some() {
            parts += 1;
        }
        self.tally.add_ascii(frame(parts));
        Ok(None)
    }

    fn visit_map<M: MapAccess<'de>>(mut self, mut map: M) -> Result<Option<u64>, M::Error> {
        let mut parts = 0;
        while map.next_key_seed(self.part())?.is_some() {
            map.next_value_seed(self.part())?;
            // The colon.
            self.tally.add_ascii(1);
            parts += 1;
        }
        self.tally.add_ascii(frame(parts));
        Ok(None)
    }
}

/// The brackets around this many parts, and the commas between them.
fn frame(parts: u64) -> u64 {
    2 + parts.saturating_sub(1)
}

struct Adding<'a>(&'a mut Tally);

impl Write for Adding<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.add(text);
        Ok(())
    }
}
