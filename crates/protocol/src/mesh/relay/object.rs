//! The fields of an object as raw JSON.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::fault::Fault;
use crate::json::fields::Text;

/// More fields than any message has. Each takes memory, and its text may be three bytes long.
const MAX_FIELDS: usize = 64;

/// The fields of a message's payload.
pub(super) struct Object<'a> {
    kind: &'static str,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// The payload of a message, its `_0` taken off, and its text.
    pub(super) fn unwrap(kind: &'static str, raw: &'a RawValue) -> Result<(Self, &'a str), Fault> {
        let outer = Self::read(kind, raw)?;
        let Some(inner) = outer.get("_0") else { return Ok((outer, raw.get())) };
        let object = Self::read(kind, inner)?;
        // A `_0` within `_0` is refused: a reader that takes off both would read another message
        // than was checked here.
        if object.get("_0").is_some() {
            return Err(Fault::Field { kind, field: "_0" });
        }
        Ok((object, inner.get()))
    }

    fn read(kind: &'static str, raw: &'a RawValue) -> Result<Self, Fault> {
        if !raw.get().starts_with('{') {
            return Err(Fault::NoPayload(kind));
        }
        let Fields(fields) = serde_json::from_str(raw.get()).map_err(|_| Fault::Crowded(kind))?;
        let object = Self { kind, fields };
        if object.has_twice() { Err(Fault::Twice(kind)) } else { Ok(object) }
    }

    fn has_twice(&self) -> bool {
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// A field as raw JSON.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A field that is text, if it is there and not null.
    pub(super) fn opt_text(&self, name: &'static str) -> Result<Option<Cow<'a, str>>, Fault> {
        let Some(raw) = self.get(name).filter(|raw| raw.get() != "null") else { return Ok(None) };
        let text = serde_json::from_str::<Text<'a>>(raw.get());
        text.map(|Text(text)| Some(text)).map_err(|_| self.bad(name))
    }

    /// A field that is text.
    pub(super) fn text(&self, name: &'static str) -> Result<Cow<'a, str>, Fault> {
        self.opt_text(name)?.ok_or_else(|| self.bad(name))
    }

    /// The fault for a missing or invalid field.
    pub(super) fn bad(&self, field: &'static str) -> Fault {
        Fault::Field { kind: self.kind, field }
    }
}

struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of at most {MAX_FIELDS} fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((Text(name), value)) = map.next_entry()? {
            if fields.len() == MAX_FIELDS {
                return Err(serde::de::Error::invalid_length(MAX_FIELDS + 1, &self));
            }
            fields.push((name, value));
        }
        Ok(Fields(fields))
    }
}
