//! Reads the fields of a request and reports the path of an invalid one.

use std::{borrow::Cow, fmt::Display};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::clip;

/// A string that is borrowed from the body unless it has escapes. Unlike a plain `Cow`, it also
/// borrows inside an `Option`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(
    /// The text.
    #[serde(borrow)]
    pub Cow<'a, str>,
);

/// A request with a field that cannot be read or served; the client gets status 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadRequest {
    /// The parameter that is at fault, as a path such as `messages[2].content`.
    pub param: Option<String>,
    /// The fault, and how to fix it.
    pub message: String,
}

impl BadRequest {
    /// A fault of one parameter.
    pub fn new(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), message: message.into() }
    }
}

/// The whole body.
pub fn body<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, BadRequest> {
    serde_json::from_slice(body).map_err(|_| wrong::<T>(body, ""))
}

/// One value of the body. `path` is where it stands, as `input[2].content`.
pub fn value<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    path: impl Display,
) -> Result<T, BadRequest> {
    serde_json::from_str(raw.get()).map_err(|_| wrong::<T>(raw.get().as_bytes(), &path.to_string()))
}

/// Describes the error in the value at `path`, and where in the value it is. The value is read a
/// second time to track the path, so that the first reading needs no tracking.
fn wrong<'a, T: Deserialize<'a>>(value: &'a [u8], path: &str) -> BadRequest {
    let mut json = serde_json::Deserializer::from_slice(value);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut json) else {
        return BadRequest { param: None, message: "the request body cannot be read".to_owned() };
    };
    let within = error.path().to_string();
    let path = match (path, within.as_str()) {
        (path, ".") => path.to_owned(),
        ("", within) => within.to_owned(),
        (path, within) if within.starts_with('[') => format!("{path}{within}"),
        (path, within) => format!("{path}.{within}"),
    };
    let why = told(error.inner());
    if path.is_empty() {
        return BadRequest {
            param: None,
            message: format!("the request body cannot be read: {why}"),
        };
    }
    let path = clip(&path, 256);
    BadRequest::new(path, format!("`{path}`: {why}"))
}

/// The error text without the value, which may be long. It uses JSON's type names and leaves out
/// line and column, since the path gives the position.
fn told(error: &serde_json::Error) -> String {
    let whole = error.to_string();
    let words = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(words, _)| words);
    let Some((found, expected)) = words.rsplit_once(", expected ") else {
        return clip(words, 256).to_owned();
    };
    let found = found.replace("invalid type: map", "invalid type: object");
    let found = found.replace("invalid type: sequence", "invalid type: list");
    let expected = match expected {
        "u64" | "i64" | "u32" => "a whole number",
        "f64" => "a number",
        "a sequence" => "a list",
        structure if structure.starts_with("struct ") => "an object",
        other => other,
    };
    format!("{}, expected {expected}", clip(&found, 256))
}

/// A string that must be there.
pub fn text<'a>(raw: Option<&'a RawValue>, path: impl Display) -> Result<Cow<'a, str>, BadRequest> {
    let missing = || BadRequest::new(path.to_string(), format!("`{path}` is missing"));
    value(raw.ok_or_else(missing)?, &path).map(|Text(text)| text)
}

/// A required object as raw JSON: a JSON schema.
pub fn object(raw: Option<&RawValue>, path: impl Display) -> Result<&RawValue, BadRequest> {
    let wrong = |why| BadRequest::new(path.to_string(), format!("`{path}` {why}"));
    match raw {
        Some(raw) if raw.get().starts_with('{') => Ok(raw),
        Some(_) => Err(wrong("must be an object")),
        None => Err(wrong("is missing")),
    }
}

/// A value that is a string or a list: the form that content has in several APIs.
#[derive(Debug)]
pub enum TextOrList<'a> {
    /// A string.
    Text(Cow<'a, str>),
    /// The values of a list as raw JSON.
    List(Vec<&'a RawValue>),
}

impl<'a> TextOrList<'a> {
    /// Reads one of both.
    pub fn read(raw: &'a RawValue, path: impl Display) -> Result<Self, BadRequest> {
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

/// Refuses the first of these parameters that is present and neither `null`, `false` nor empty,
/// because it cannot be carried over.
pub fn refuse(parameters: &[(&str, Option<&RawValue>)], reason: &str) -> Result<(), BadRequest> {
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
    fn the_parameter_that_is_wrong_is_named_in_the_words_of_json() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Request<'a> {
            #[serde(borrow)]
            tools: Option<Vec<&'a RawValue>>,
            limit: Option<u64>,
            #[serde(borrow)]
            text: Option<Inner<'a>>,
        }
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only read")]
        struct Inner<'a> {
            #[serde(borrow)]
            name: Option<Text<'a>>,
        }
        for (text, param, message) in [
            (r#"{"tools":{}}"#, "tools", "`tools`: invalid type: object, expected a list"),
            (r#"{"tools":"x"}"#, "tools", "`tools`: invalid type: string \"x\", expected a list"),
            (
                r#"{"limit":-1}"#,
                "limit",
                "`limit`: invalid value: integer `-1`, expected a whole number",
            ),
            (r#"{"text":5}"#, "text", "`text`: invalid type: integer `5`, expected an object"),
            (
                r#"{"tools":[{"a":1}],"text":{"name":[]}}"#,
                "text.name",
                "`text.name`: invalid type: list, expected a string",
            ),
        ] {
            assert_eq!(
                body::<Request<'_>>(text.as_bytes()).unwrap_err(),
                BadRequest::new(param, message)
            );
        }
        let inner = value::<Inner<'_>>(&raw(r#"{"name":1}"#), "input[2]").unwrap_err();
        assert_eq!(inner.param.as_deref(), Some("input[2].name"));
        let list = value::<Vec<u64>>(&raw("[1, {}]"), "stop").unwrap_err();
        assert_eq!(list.message, "`stop[1]`: invalid type: object, expected a whole number");
        assert_eq!(body::<Inner<'_>>(b"[]]").unwrap_err().param, None);
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
