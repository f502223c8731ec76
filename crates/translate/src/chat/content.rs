//! The content of a message, and the lists of thoughts beside it.

use std::borrow::Cow;

use protocol::json::lenient::{Lenient, any};
use serde::{
    Deserialize,
    de::{Deserializer, SeqAccess},
};
use serde_json::Value;

/// Content as a text or a list of parts, some of which may be thoughts. Anything else counts as
/// missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content<'a> {
    /// The text of the model's answer.
    pub text: Cow<'a, str>,
    /// Its thoughts.
    pub thoughts: Cow<'a, str>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Content<'a> {
    fn of_text(text: Cow<'de, str>) -> Self {
        Self { text, thoughts: Cow::Borrowed("") }
    }

    fn of_list<A: SeqAccess<'de>>(mut parts: A) -> Result<Self, A::Error> {
        let mut content = Self::default();
        while let Some(part) = parts.next_element::<Value>()? {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            let thinks = kind.starts_with("thinking") || kind.starts_with("reasoning");
            let of_its_kind = if thinks { &mut content.thoughts } else { &mut content.text };
            push_text(&part, of_its_kind.to_mut());
        }
        Ok(content)
    }
}

/// Thoughts as a text, or as a list of parts. Anything else counts as missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Thoughts<'a>(
    /// The text of all parts.
    pub Cow<'a, str>,
    /// The parts that the provider expects back in the next request: those with a signature, and
    /// encrypted ones.
    pub Vec<Value>,
);

impl<'de: 'a, 'a> Deserialize<'de> for Thoughts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any(deserializer)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Thoughts<'a> {
    fn of_text(text: Cow<'de, str>) -> Self {
        Self(text, Vec::new())
    }

    fn of_list<A: SeqAccess<'de>>(mut parts: A) -> Result<Self, A::Error> {
        let (mut text, mut sealed) = (String::new(), Vec::new());
        while let Some(part) = parts.next_element::<Value>()? {
            push_text(&part, &mut text);
            if is_sealed(&part) {
                sealed.push(part);
            }
        }
        Ok(Self(text.into(), sealed))
    }
}

/// Whether a part has a signature or encrypted data.
fn is_sealed(part: &Value) -> bool {
    let has = |name: &str| part.get(name).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    has("signature") || has("data")
}

/// Appends the text of a part: a string, an object with a string under one of the usual names, or a
/// list of either. The JSON reader bounds the nesting, and so the recursion.
fn push_text(part: &Value, out: &mut String) {
    const NAMES: [&str; 4] = ["text", "thinking", "summary", "reasoning"];
    match part {
        Value::String(text) => out.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| push_text(part, out)),
        Value::Object(fields) => {
            let named =
                NAMES.into_iter().find_map(|name| fields.get(name).filter(|it| !it.is_null()));
            named.into_iter().for_each(|part| push_text(part, out));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(json: &str) -> (String, String) {
        let Content { text, thoughts } = serde_json::from_str(json).unwrap();
        (text.into_owned(), thoughts.into_owned())
    }

    #[test]
    fn thoughts_among_the_parts_are_told_from_text() {
        let both = ("So.".to_owned(), "Hm, well".to_owned());
        for parts in [
            r#"[{"type":"thinking","thinking":[{"type":"text","text":"Hm, "},{"text":"well"}]},{"type":"text","text":"So."}]"#,
            r#"[{"type":"thinking","thinking":"Hm, well","signature":"x"},"So.",null,7]"#,
            r#"[{"type":"reasoning","text":null,"summary":["Hm, ","well"]},{"text":"So."}]"#,
            r#"[{"type":"reasoning_text","text":"Hm, well"},{"type":"output_text","text":"So."}]"#,
        ] {
            assert_eq!(content(parts), both, "{parts}");
        }
        assert_eq!(content("\"a\""), ("a".to_owned(), String::new()));
        for other in ["null", "5", "{}", "[]", "true"] {
            assert_eq!(content(other), Default::default(), "{other}");
        }
    }

    #[test]
    fn lists_of_thoughts_are_joined() {
        let read = |json: &str| serde_json::from_str::<Thoughts<'_>>(json).unwrap().0.into_owned();
        assert_eq!(
            read(
                r#"[{"type":"reasoning.summary","summary":"a"},{"type":"reasoning.text","text":"b","signature":null},{"type":"reasoning.encrypted","data":"x"}]"#
            ),
            "ab"
        );
        assert_eq!(read("null"), "");
    }
}
