//! The members of a JSON object, each as it is written.

use std::{borrow::Cow, fmt};

use protocol::json::push_escaped;
use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The members of an object, in their order. Of a repeated name the last value counts.
#[derive(Debug, Default)]
pub(crate) struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The members of this object; `None` for another value.
    pub(crate) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// The value of a member. A member that is `null` counts as missing.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().rfind(|(known, _)| known == name)?;
        (found.1.get() != "null").then_some(found.1)
    }

    /// Whether there is a member of this name, even if it is `null`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// The value of a member that is a string.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// The object with changed members, each a name with its new value as JSON; `None` removes the member. Members
    /// that the object did not have come at its end.
    pub(crate) fn with(&self, changes: &[(&str, Option<&str>)]) -> String {
        let length: usize = self.0.iter().map(|(name, raw)| name.len() + raw.get().len() + 4).sum();
        let added: usize =
            changes.iter().map(|(name, to)| name.len() + to.map_or(0, str::len) + 4).sum();
        let mut out = String::with_capacity(length + added + 2);
        out.push('{');
        for (at, (name, raw)) in self.0.iter().enumerate() {
            let is_last = !self.0[at + 1..].iter().any(|(other, _)| other == name);
            let change = changes.iter().find(|(changed, _)| changed == name);
            match change {
                _ if !is_last => {}
                Some((_, to)) => push(&mut out, name, *to),
                None => push(&mut out, name, Some(raw.get())),
            }
        }
        for (name, to) in changes.iter().filter(|(name, _)| !self.has(name)) {
            push(&mut out, name, *to);
        }
        out.push('}');
        out
    }
}

fn push(out: &mut String, name: &str, value: Option<&str>) {
    let Some(value) = value else { return };
    if out.len() > 1 {
        out.push(',');
    }
    out.push('"');
    push_escaped(out, name);
    out.push_str("\":");
    out.push_str(value);
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// A name that is copied only if it has escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn members_are_replaced_in_their_places_added_or_left_out() {
        let given = r#"{"a": 1.50,"b":null, "a":[ 2 ],"c\u0065":"\ud83c"}"#;
        let members = Members::read(given).unwrap();
        assert_eq!(members.with(&[]), r#"{"b":null,"a":[ 2 ],"ce":"\ud83c"}"#);
        let changes = [("ce", None), ("b", Some("7")), ("d\"", Some("{}")), ("none", None)];
        assert_eq!(members.with(&changes), r#"{"b":7,"a":[ 2 ],"d\"":{}}"#);
        assert_eq!(Members::read("{}").unwrap().with(&[("a", Some("1"))]), r#"{"a":1}"#);
        assert!(members.get("b").is_none() && members.has("b") && !members.has("x"));
        for none in ["", "[]", "{", "{\"a\":}", "{\"a\":1} x", "null"] {
            assert!(Members::read(none).is_none(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_the_same_object(names in proptest::collection::vec("[a-c\"é]{0,2}", 0..6)) {
            let given: serde_json::Map<String, Value> =
                names.iter().enumerate().map(|(at, name)| (name.clone(), json!([at, name]))).collect();
            let text = Value::Object(given.clone()).to_string();
            let members = Members::read(&text).unwrap();
            let mut wanted = given;
            wanted.insert("a".to_owned(), json!("new"));
            wanted.remove("b");
            let written = members.with(&[("a", Some("\"new\"")), ("b", None)]);
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), Value::Object(wanted));
        }
    }
}
