//! Reading the parts of a request, with the path of the one that is wrong.

use std::{borrow::Cow, fmt::Display};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::BadRequest;
use crate::json;

/// A string that is borrowed from the body unless it has escapes, also inside of an `Option`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The whole body.
pub(crate) fn body<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, BadRequest> {
    let unreadable = |error: serde_json::Error| BadRequest {
        param: None,
        message: format!("the request body cannot be read: {}", told(&error)),
    };
    serde_json::from_slice(body).map_err(unreadable)
}

/// One value of the body. `path` is where it stands, as `input[2].content`.
pub(crate) fn value<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    path: impl Display,
) -> Result<T, BadRequest> {
    serde_json::from_str(raw.get())
        .map_err(|error| BadRequest::new(path.to_string(), format!("`{path}`: {}", told(&error))))
}

/// What is wrong, of which the value itself may be a long part.
fn told(error: &serde_json::Error) -> String {
    json::clip(&error.to_string(), 256).to_owned()
}

/// A string that must be there.
pub(crate) fn text<'a>(
    raw: Option<&'a RawValue>,
    path: impl Display,
) -> Result<Cow<'a, str>, BadRequest> {
    let missing = || BadRequest::new(path.to_string(), format!("`{path}` is missing"));
    value(raw.ok_or_else(missing)?, &path).map(|Text(text)| text)
}

/// A value that is a string or a list: the form that content has in several APIs.
#[derive(Debug)]
pub(crate) enum TextOrList<'a> {
    /// A string.
    Text(Cow<'a, str>),
    /// The values of a list, each as it stands.
    List(Vec<&'a RawValue>),
}

impl<'a> TextOrList<'a> {
    /// Reads one of both.
    pub(crate) fn read(raw: &'a RawValue, path: impl Display) -> Result<Self, BadRequest> {
        match raw.get().as_bytes().first() {
            Some(b'"') => value(raw, path).map(|Text(text)| Self::Text(text)),
            Some(b'[') => value(raw, path).map(Self::List),
            _ => {
                let message = format!("`{path}` must be a string or a list");
                Err(BadRequest::new(path.to_string(), message))
            }
        }
    }
}

/// Says of the first of these parameters that is there, and neither `null`, `false` nor empty,
/// that it cannot be carried over.
pub(crate) fn refuse(
    parameters: &[(&str, Option<&RawValue>)],
    reason: &str,
) -> Result<(), BadRequest> {
    let asks = |raw: &RawValue| !matches!(raw.get(), "null" | "false" | "[]" | "{}" | "\"\"");
    let found = parameters.iter().find(|(_, raw)| raw.is_some_and(asks));
    found.map_or(Ok(()), |(name, _)| Err(BadRequest::new(*name, format!("`{name}` {reason}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).unwrap()
    }

    #[test]
    fn text_without_escapes_is_borrowed() {
        let plain = raw("\"plain\"");
        assert!(matches!(text(Some(&plain), "x").unwrap(), Cow::Borrowed("plain")));
        assert_eq!(text(Some(&raw(r#""a\"b""#)), "x").unwrap(), "a\"b");
        assert_eq!(text(None, "x").unwrap_err().message, "`x` is missing");
    }

    #[test]
    fn content_is_a_string_or_a_list() {
        let (string, list) = (raw("\"a\""), raw("[1, {}]"));
        assert!(
            matches!(TextOrList::read(&string, "x").unwrap(), TextOrList::Text(text) if text == "a")
        );
        assert!(
            matches!(TextOrList::read(&list, "x").unwrap(), TextOrList::List(list) if list.len() == 2)
        );
        for other in ["7", "null", "{}", "true"] {
            let refused = TextOrList::read(&raw(other), "x").unwrap_err();
            assert_eq!(refused.message, "`x` must be a string or a list");
        }
    }

    #[test]
    fn only_what_asks_for_something_is_refused() {
        for harmless in ["null", "false", "[]", "{}", "\"\""] {
            assert_eq!(refuse(&[("a", None), ("b", Some(&raw(harmless)))], "is not here"), Ok(()));
        }
        let refused = refuse(&[("a", None), ("b", Some(&raw("0")))], "is not here").unwrap_err();
        assert_eq!(refused, BadRequest::new("b", "`b` is not here"));
    }

    #[test]
    fn a_long_value_is_not_repeated_in_whole() {
        let long = raw(&format!("\"{}\"", "x".repeat(9000)));
        assert!(value::<u64>(&long, "seed").unwrap_err().message.len() < 300);
        let whole = format!(r#"{{"a":"{}"}}"#, "x".repeat(9000));
        type Counts = std::collections::HashMap<String, u64>;
        assert!(body::<Counts>(whole.as_bytes()).unwrap_err().message.len() < 400);
    }
}
