//! Default parameters for a body that does not set them.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::splice::{Edit, object_end, splice};
use crate::json;

/// Parameters by name, each with its value as JSON text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Defaults(BTreeMap<String, String>);

/// Parameters that define the request: they cannot be defaults.
const RESERVED: [&str; 6] = ["model", "stream", "stream_options", "messages", "prompt", "input"];

/// A parameter that can have no default.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` can have no default: it is the request's own")]
pub struct Reserved(pub String);

impl Defaults {
    /// Creates defaults from these parameters.
    ///
    /// # Errors
    /// [`Reserved`] for a parameter that only the request itself may set.
    pub fn new(parameters: impl IntoIterator<Item = (String, Value)>) -> Result<Self, Reserved> {
        let text = |(name, value): (String, Value)| {
            if RESERVED.contains(&&*name) {
                Err(Reserved(name))
            } else {
                Ok((name, value.to_string()))
            }
        };
        parameters.into_iter().map(text).collect::<Result<_, _>>().map(Self)
    }

    /// Whether it has no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The body with the missing parameters added at its end. Offsets into the body stay valid. A
    /// body that is not an object with at least one member stays unchanged; [`peek`](super::peek)
    /// checks for that.
    pub fn complete(&self, body: &Bytes) -> Bytes {
        let (Some(lacking), Some(end)) = (self.lacking(body), object_end(body)) else {
            return body.clone();
        };
        if lacking.is_empty() { body.clone() } else { splice(body, vec![added(end, lacking)]) }
    }

    fn lacking(&self, body: &[u8]) -> Option<BTreeMap<&str, &str>> {
        let all = self.0.iter().map(|(name, value)| (&**name, &**value)).collect();
        let mut reader = serde_json::Deserializer::from_slice(body);
        reader.deserialize_map(Lacking(all)).ok()
    }
}

/// The edit that adds parameters, each a name and a value as JSON text, at the end of an object that
/// has one already.
pub(crate) fn added<N: AsRef<str>, V: AsRef<str>>(
    end: usize,
    lacking: impl IntoIterator<Item = (N, V)>,
) -> Edit {
    let mut text = String::new();
    for (name, value) in lacking {
        text.push_str(",\"");
        json::push_escaped(&mut text, name.as_ref());
        text.push_str("\":");
        text.push_str(value.as_ref());
    }
    Edit { span: end..end, text }
}

/// The defaults that an object does not have.
struct Lacking<'a>(BTreeMap<&'a str, &'a str>);

impl<'de, 'a> Visitor<'de> for Lacking<'a> {
    type Value = BTreeMap<&'a str, &'a str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            self.0.remove(&*name);
            map.next_value::<IgnoredAny>()?;
        }
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complete(defaults: &Value, body: &'static str) -> String {
        let parameters = defaults.as_object().unwrap().clone();
        let body =
            Defaults::new(parameters).unwrap().complete(&Bytes::from_static(body.as_bytes()));
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn absent_fields_are_added_and_present_ones_stay() {
        let defaults = json!({"temperature": 0.2, "stop": ["a\n"], "x\"y": null});
        assert_eq!(
            complete(&defaults, "{\"model\":\"m\", \"t\":{\"temperature\":1} }\n"),
            "{\"model\":\"m\", \"t\":{\"temperature\":1} ,\"stop\":[\"a\\n\"],\"temperature\":0.2,\"x\\\"y\":null}\n"
        );
        assert_eq!(
            complete(&defaults, r#"{"temp\u0065rature":null,"stop":1,"x\"y":2}"#),
            r#"{"temp\u0065rature":null,"stop":1,"x\"y":2}"#
        );
        assert_eq!(complete(&json!({}), r#"{"model":"m"}"#), r#"{"model":"m"}"#);
        assert_eq!(complete(&defaults, "[]"), "[]");
    }

    #[test]
    fn essential_fields_have_no_default() {
        for name in RESERVED {
            let refused = Defaults::new([(name.to_owned(), Value::Null)]);
            assert_eq!(refused, Err(Reserved(name.to_owned())));
        }
    }
}
