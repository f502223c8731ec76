//! The schema of a tool's parameters, in the form that strict providers demand: an object with
//! `type` and `properties`.

use std::{borrow::Cow, fmt};

use protocol::json::{self, BadRequest, fields};
use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::chat_request::no_parameters;

/// A schema as raw JSON; the client's own if that is complete.
pub(crate) type Schema<'a> = Cow<'a, RawValue>;

/// The schema at `path`. Adds `type` and `properties` if they are missing or `null`; other members keep
/// their bytes. Without a schema, returns an empty one.
///
/// # Errors
/// [`BadRequest`] when it is no object.
pub(crate) fn of_object<'a>(
    raw: Option<&'a RawValue>,
    path: &str,
) -> Result<Schema<'a>, BadRequest> {
    let Some(raw) = raw else { return Ok(Cow::Borrowed(no_parameters())) };
    let raw = fields::object(Some(raw), path)?;
    let Members(mut members) = fields::value(raw, path)?;
    members.retain(|(name, value)| !(ADDED.contains(name) && value.get() == "null"));
    let has = |name: &str| members.iter().any(|(given, _)| given == name);
    if ADDED.names().all(has) {
        return Ok(Cow::Borrowed(raw));
    }
    let added = ADDED.0.iter().filter(|(name, _)| !has(name));
    let all = added.map(|(name, value)| (Cow::Borrowed(*name), *value));
    let all = all.chain(members.iter().map(|(name, value)| (name.clone(), value.get())));
    let all: Vec<String> =
        all.map(|(name, value)| format!("{}:{value}", json::write(&name))).collect();
    // Cannot fail: all pieces are JSON.
    let whole = RawValue::from_string(format!("{{{}}}", all.join(",")));
    Ok(whole.map_or(Cow::Borrowed(raw), Cow::Owned))
}

/// The fields that a schema must have, and their least values.
struct AddedFields([(&'static str, &'static str); 2]);

const ADDED: AddedFields = AddedFields([("type", r#""object""#), ("properties", "{}")]);

impl AddedFields {
    fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.0.iter().map(|(name, _)| *name)
    }

    fn contains(&self, name: &str) -> bool {
        self.names().any(|added| added == name)
    }
}

/// The members of an object, in their order.
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some((fields::Text(name), value)) = map.next_entry()? {
            members.push((name, value));
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(given: &str) -> String {
        let raw = RawValue::from_string(given.to_owned()).unwrap();
        of_object(Some(&raw), "x").unwrap().get().to_owned()
    }

    #[test]
    fn what_is_missing_is_added_and_the_rest_keeps_its_bytes() {
        let whole = r#"{ "type": "object", "properties": {"b": 1.0, "a":{}} }"#;
        let empty = r#"{"type":"object","properties":{}}"#;
        for (given, expected) in [
            (whole, whole),
            ("{}", empty),
            (r#"{"type": null, "properties":null}"#, empty),
            (r#"{"type":"object"}"#, r#"{"properties":{},"type":"object"}"#),
            (
                r#"{"properties": {"b": 1.0, "a":{}}, "x\n":1}"#,
                r#"{"type":"object","properties":{"b": 1.0, "a":{}},"x\n":1}"#,
            ),
        ] {
            assert_eq!(completed(given), expected);
        }
        assert_eq!(of_object(None, "x").unwrap().get(), empty);
        let list = RawValue::from_string("[]".to_owned()).unwrap();
        assert_eq!(of_object(Some(&list), "x").unwrap_err().param.as_deref(), Some("x"));
    }
}
