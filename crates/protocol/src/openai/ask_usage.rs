//! Asking a backend for the usage of a stream: `stream_options.include_usage` of Chat Completions
//! and of Completions.

use std::ops::Range;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::{
    peek::span,
    splice::{Edit, object_end},
};

/// The change to a streaming request that makes its answer report usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskUsage {
    /// Nothing: the client asks for it itself.
    Asked,
    /// This edit. Parts that the client did not ask for must be removed from the answer again: see
    /// [`UsageFilter`](super::UsageFilter).
    Edit(Edit),
    /// Nothing can be done: the options are not an object. The backend will refuse them.
    Unaskable,
}

/// How to ask for usage in this body, whose `stream_options` are at `options`, as
/// [`peek`](super::peek) found them. Existing options stay; only `include_usage` is set.
pub fn ask_usage(body: &[u8], options: Option<Range<usize>>) -> AskUsage {
    let Some(options) = options else {
        let Some(end) = object_end(body) else { return AskUsage::Unaskable };
        let text = r#","stream_options":{"include_usage":true}"#.to_owned();
        return AskUsage::Edit(Edit { span: end..end, text });
    };
    let given = body.get(options.clone()).and_then(|given| std::str::from_utf8(given).ok());
    given.map_or(AskUsage::Unaskable, |given| within(given, options.start))
}

/// How to ask for usage in existing options, which begin at byte `start` of the body.
fn within(given: &str, start: usize) -> AskUsage {
    let edit = |span: Range<usize>, text: &str| {
        let span = start + span.start..start + span.end;
        AskUsage::Edit(Edit { span, text: text.to_owned() })
    };
    if given == "null" {
        return edit(0..given.len(), r#"{"include_usage":true}"#);
    }
    if !given.starts_with('{') {
        return AskUsage::Unaskable;
    }
    match serde_json::from_str(given) {
        Ok(Options { include_usage: Some(value) }) if value.get() == "true" => AskUsage::Asked,
        Ok(Options { include_usage: Some(value) }) => edit(span(given, value), "true"),
        Ok(Options { include_usage: None }) => {
            let is_empty = given[1..].trim_start().starts_with('}');
            let more = if is_empty { "" } else { "," };
            edit(1..1, &format!(r#""include_usage":true{more}"#))
        }
        Err(_) => AskUsage::Unaskable,
    }
}

#[derive(Deserialize)]
struct Options<'a> {
    #[serde(borrow, default, deserialize_with = "even_null")]
    include_usage: Option<&'a RawValue>,
}

/// A field that is present, even if it is `null`.
fn even_null<'de: 'a, 'a, D: Deserializer<'de>>(from: D) -> Result<Option<&'a RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::openai::{peek, splice};

    fn asked(body: &str) -> String {
        let options = peek(body.as_bytes()).unwrap().stream_options_span;
        match ask_usage(body.as_bytes(), options) {
            AskUsage::Asked => "asked".to_owned(),
            AskUsage::Unaskable => "unaskable".to_owned(),
            AskUsage::Edit(edit) => {
                let body = splice(&Bytes::copy_from_slice(body.as_bytes()), vec![edit]);
                String::from_utf8(body.to_vec()).unwrap()
            }
        }
    }

    #[test]
    fn options_are_added_or_changed_and_nothing_else() {
        let cases = [
            (
                "{\"model\":\"m\"} \n",
                "{\"model\":\"m\",\"stream_options\":{\"include_usage\":true}} \n",
            ),
            (
                r#"{"model":"m","stream_options":{ }}"#,
                r#"{"model":"m","stream_options":{"include_usage":true }}"#,
            ),
            (
                r#"{"stream_options": {"x":[1, 2]},"model":"m"}"#,
                r#"{"stream_options": {"include_usage":true,"x":[1, 2]},"model":"m"}"#,
            ),
            (
                r#"{"model":"m","stream_options":{"x":1, "include_usage" : false}}"#,
                r#"{"model":"m","stream_options":{"x":1, "include_usage" : true}}"#,
            ),
            (
                r#"{"stream_options":null,"model":"m"}"#,
                r#"{"stream_options":{"include_usage":true},"model":"m"}"#,
            ),
            (
                r#"{"stream_options":{"include_usage":null},"model":"m"}"#,
                r#"{"stream_options":{"include_usage":true},"model":"m"}"#,
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(asked(body), expected);
        }
    }

    #[test]
    fn a_request_for_usage_stays_and_a_bad_one_is_the_backends() {
        assert_eq!(asked(r#"{"model":"m","stream_options":{"include_usage":true}}"#), "asked");
        for nonsense in
            ["\"yes\"", "[]", "[true]", "1", "{\"include_usage\":1,\"include_usage\":2}"]
        {
            let body = format!(r#"{{"model":"m","stream_options":{nonsense}}}"#);
            assert_eq!(asked(&body), "unaskable", "{nonsense}");
        }
    }
}
