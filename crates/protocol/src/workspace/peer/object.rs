//! The JSON text of a session, project or team, as members replicate it: with all its fields, even
//! unknown ones.

use std::{fmt, sync::Arc};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    json::{self, fields::Text},
    workspace::limits::{NAME_MAX, OBJECT_DEPTH_MAX, OBJECT_MAX},
};

/// The text of a JSON object of at most [`OBJECT_MAX`] bytes, nested no deeper than
/// [`OBJECT_DEPTH_MAX`]. A clone shares its memory.
#[derive(Clone)]
pub struct ObjectText(Arc<RawValue>);

/// Why an object is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadObject {
    /// It is not JSON, not an object, or has a known field twice.
    #[error("not a JSON object with each field once")]
    NotAnObject,
    /// It has no id, or one that is not a UUID.
    #[error("an object without an id such as 550e8400-e29b-41d4-a716-446655440000")]
    NoId,
    /// Longer than [`OBJECT_MAX`].
    #[error("an object of more than {OBJECT_MAX} bytes")]
    TooLong,
    /// Nested deeper than [`OBJECT_DEPTH_MAX`].
    #[error("an object that is nested deeper than {OBJECT_DEPTH_MAX} levels")]
    TooDeep,
}

impl ObjectText {
    /// The text of an object.
    ///
    /// # Errors
    /// [`BadObject`].
    pub fn new(text: impl Into<String>) -> Result<Self, BadObject> {
        let text = text.into();
        if text.len() > OBJECT_MAX {
            return Err(BadObject::TooLong);
        }
        if depth(&text) > OBJECT_DEPTH_MAX {
            return Err(BadObject::TooDeep);
        }
        let raw = RawValue::from_string(text).map_err(|_| BadObject::NotAnObject)?;
        if !raw.get().starts_with('{') {
            return Err(BadObject::NotAnObject);
        }
        Ok(Self(raw.into()))
    }

    /// The text as JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The object with a field set. The other fields keep their order.
    ///
    /// # Errors
    /// [`BadObject::TooLong`], [`BadObject::TooDeep`].
    pub fn with(&self, name: &str, value: &impl Serialize) -> Result<Self, BadObject> {
        rewrite(self.as_str(), &[], &[(name, json::write(value))])
    }

    /// The object with its owner's id as `node_id`.
    pub(super) fn owned_by(&self, node: &str) -> Self {
        // An object without an owner is only accepted with room for one, so this does not fail.
        self.with("node_id", &node).unwrap_or_else(|_| self.clone())
    }

    /// Whether there is room for the owner's id.
    pub(super) fn has_room_for_owner(&self) -> bool {
        self.as_str().len() + OWNER_MAX <= OBJECT_MAX
    }
}

/// The most bytes that `"node_id":"…",` takes: each byte of the id may need an escape.
const OWNER_MAX: usize = 2 * NAME_MAX + 16;

/// A value as the text of an object.
pub(super) fn text_of(value: &impl Serialize) -> Result<ObjectText, BadObject> {
    ObjectText::new(json::write(value))
}

/// Writes the object again, without some fields and with others set. A field that the object
/// already has keeps its place.
pub(super) fn rewrite(
    text: &str,
    without: &[&str],
    set: &[(&str, String)],
) -> Result<ObjectText, BadObject> {
    ObjectText::new(rewritten(text, without, set, OBJECT_MAX)?)
}

/// Like [`rewrite`], but with another bound, in bytes. Fields that are left out do not count.
pub(super) fn rewritten(
    text: &str,
    without: &[&str],
    set: &[(&str, String)],
    max: usize,
) -> Result<String, BadObject> {
    let mut rewriting = Rewriting { without, set, max, out: String::new(), there: Vec::new() };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = (&mut rewriting).deserialize(&mut json);
    let Rewriting { mut out, there, .. } = rewriting;
    if out.len() > max {
        return Err(BadObject::TooLong);
    }
    read.and_then(|()| json.end()).map_err(|_| BadObject::NotAnObject)?;
    for (name, value) in set.iter().filter(|(name, _)| !there.contains(name)) {
        push_field(&mut out, name, value);
    }
    out.push_str(if out.is_empty() { "{}" } else { "}" });
    Ok(out)
}

/// An object while it is written again.
struct Rewriting<'a> {
    without: &'a [&'a str],
    set: &'a [(&'a str, String)],
    max: usize,
    out: String,
    /// The fields of `set` that the object has.
    there: Vec<&'a str>,
}

impl Rewriting<'_> {
    fn field(&mut self, name: &str, value: &str) {
        if self.without.contains(&name) {
            return;
        }
        let set = self.set.iter().find(|(set, _)| *set == name);
        self.there.extend(set.map(|(name, _)| *name));
        push_field(&mut self.out, name, set.map_or(value, |(_, value)| value));
    }
}

impl<'de> DeserializeSeed<'de> for &mut Rewriting<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Rewriting<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &RawValue>()? {
            self.field(&name, value.get());
            if self.out.len() > self.max {
                return Err(A::Error::custom(BadObject::TooLong));
            }
        }
        Ok(())
    }
}

fn push_field(out: &mut String, name: &str, value: &str) {
    out.push_str(if out.is_empty() { "{\"" } else { ",\"" });
    json::push_escaped(out, name);
    out.push_str("\":");
    out.push_str(value);
}

/// Reads the fields of an object. One with a known field twice is refused.
pub(super) fn fields_of<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, BadObject> {
    match text.starts_with('{') {
        true => serde_json::from_str(text).map_err(|_| BadObject::NotAnObject),
        false => Err(BadObject::NotAnObject),
    }
}

/// The result of [`rewritten`] as raw JSON; `null` for an error.
pub(super) fn raw(text: Result<String, BadObject>) -> Box<RawValue> {
    let raw = text.ok().and_then(|text| RawValue::from_string(text).ok());
    raw.unwrap_or_else(|| RawValue::NULL.to_owned())
}

/// How deeply lists and objects are nested in JSON text.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

impl Serialize for ObjectText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ObjectText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::new(raw.get()).map_err(D::Error::custom)
    }
}

impl PartialEq for ObjectText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ObjectText {}

impl fmt::Debug for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
