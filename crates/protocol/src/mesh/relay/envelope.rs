//! The object with one key that every message is.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Serialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::fault::Fault;
use crate::json::{self, fields::Text};

/// A message whose name was read.
pub(super) struct Envelope<'a> {
    /// Its name.
    pub(super) kind: Cow<'a, str>,
    /// Its value.
    pub(super) payload: &'a RawValue,
    /// Whether it is the only field.
    pub(super) alone: bool,
}

impl<'a> Envelope<'a> {
    /// Reads a message's name. Of several keys the first counts, as with stock relays.
    pub(super) fn read(text: &'a str) -> Result<Self, Fault> {
        match serde_json::from_str::<Outer<'a>>(text) {
            Ok(Outer(Some(envelope))) => Ok(envelope),
            Ok(Outer(None)) => Err(Fault::Empty),
            Err(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => Err(Fault::Empty),
            Err(_) => Err(Fault::NotJson),
        }
    }

    /// The fault for an unknown name.
    pub(super) fn unsupported(&self) -> Fault {
        Fault::Unsupported(json::clip(&self.kind, 64).to_owned())
    }
}

/// A message of plain data, in the flat form.
pub(super) fn write(kind: &str, body: &impl Serialize) -> String {
    let mut out = json::write_into(format!("{{\"{kind}\":"), body);
    out.push('}');
    out
}

struct Outer<'a>(Option<Envelope<'a>>);

impl<'de> Deserialize<'de> for Outer<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OuterVisitor)
    }
}

struct OuterVisitor;

impl<'de> Visitor<'de> for OuterVisitor {
    type Value = Outer<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with one key")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((Text(kind), payload)) = map.next_entry()? else { return Ok(Outer(None)) };
        let mut alone = true;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            alone = false;
        }
        Ok(Outer(Some(Envelope { kind, payload, alone })))
    }
}
