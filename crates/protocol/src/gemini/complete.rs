//! Adds to a body what its path says, so that all later code can read Gemini's requests like those of
//! other APIs.
//!
//! | Field | Says |
//! | --- | --- |
//! | `model` | the model, as the path names it |
//! | `stream` | whether the answer is a stream |
//! | `alt` | `json` for a stream that is a JSON array |
//!
//! A body may also name the model, if it is the same one. `stream` and `alt` in the body itself are
//! overwritten: Gemini has no such fields.

use std::fmt;

use bytes::Bytes;
use serde::{
    Deserialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::call::{Call, Form, bare_name};
use crate::{
    json::{self, BadRequest},
    openai::{Edit, span, splice},
};

/// The value of `alt` for a stream that is a JSON array.
pub const ARRAY: &str = "json";

/// The body with the fields of the path. One that is no JSON object stays as it is.
///
/// # Errors
/// [`BadRequest`] when the body names another model than the path.
pub fn complete(body: &Bytes, call: &Call<'_>) -> Result<Bytes, BadRequest> {
    if let Some(own) = own_fields(body) {
        return own.completed(body, call);
    }
    // A body that strict readers refuse is mended first, as everywhere.
    let Some(mended) = json::mended(body).map(Bytes::from) else { return Ok(body.clone()) };
    own_fields(&mended).map_or_else(|| Ok(body.clone()), |own| own.completed(&mended, call))
}

fn own_fields(body: &[u8]) -> Option<OwnFields<'_>> {
    let text = str::from_utf8(body).ok()?;
    let mut json = serde_json::Deserializer::from_str(text);
    let own = json.deserialize_map(OwnVisitor).ok()?;
    json.end().ok()?;
    Some(own)
}

/// The fields of a body that the path decides on.
#[derive(Default)]
struct OwnFields<'a> {
    model: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    alt: Option<&'a RawValue>,
    has_others: bool,
}

impl OwnFields<'_> {
    fn completed(&self, body: &Bytes, call: &Call<'_>) -> Result<Bytes, BadRequest> {
        let model = self.model(call)?;
        let streams = (call.form != Form::Whole).to_string();
        let alt = (call.form == Form::Array).then(|| json::write(&ARRAY));
        let fields = [
            ("model", self.model, model),
            ("stream", self.stream, Some(streams)),
            ("alt", self.alt, alt.or_else(|| self.alt.map(|_| "null".to_owned()))),
        ];
        Ok(splice(body, self.edits(body, fields)))
    }

    /// The name to write, as JSON. `None` where neither path nor body has one.
    fn model(&self, call: &Call<'_>) -> Result<Option<String>, BadRequest> {
        let own = self.model.and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
        let own = own.as_deref().map(bare_name);
        match (&call.model, own) {
            (Some(model), Some(own)) if bare_name(model) != own => {
                let (model, own) = (json::clip(model, 64), json::clip(own, 64));
                let message = format!("`model` is `{own}`, but the path names `{model}`");
                Err(BadRequest::new("model", message))
            }
            (Some(model), _) => Ok(Some(json::write(&bare_name(model)))),
            (None, own) => Ok(own.map(|own| json::write(&own))),
        }
    }

    /// Replaces the values of fields that the body has, and adds the other fields at its front.
    fn edits<const N: usize>(
        &self,
        body: &Bytes,
        fields: [(&str, Option<&RawValue>, Option<String>); N],
    ) -> Vec<Edit> {
        let text = str::from_utf8(body).unwrap_or_default();
        let (mut edits, mut added) = (Vec::new(), Vec::new());
        for (name, own, value) in fields {
            match (own, value) {
                (Some(own), Some(value)) => {
                    edits.push(Edit { span: span(text, own), text: value });
                }
                (None, Some(value)) => added.push(format!("\"{name}\":{value}")),
                (_, None) => {}
            }
        }
        let comma = if self.has_others || !edits.is_empty() { "," } else { "" };
        if let (Some(brace), false) = (text.find('{'), added.is_empty()) {
            let text = format!("{}{comma}", added.join(","));
            edits.push(Edit { span: brace + 1..brace + 1, text });
        }
        edits
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Key {
    Model,
    Stream,
    Alt,
    #[serde(other)]
    Other,
}

struct OwnVisitor;

impl<'de> Visitor<'de> for OwnVisitor {
    type Value = OwnFields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut own = OwnFields::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::Model => own.model = Some(map.next_value()?),
                Key::Stream => own.stream = Some(map.next_value()?),
                Key::Alt => own.alt = Some(map.next_value()?),
                Key::Other => {
                    own.has_others = true;
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(body: &str, path: &str) -> Result<String, BadRequest> {
        let (path, query) =
            path.split_once('?').map_or((path, None), |(path, it)| (path, Some(it)));
        let call = Call::of(path, query).unwrap();
        let body = complete(&Bytes::copy_from_slice(body.as_bytes()), &call)?;
        Ok(String::from_utf8(body.to_vec()).unwrap())
    }

    const ONCE: &str = "/v1beta/models/m:generateContent";
    const ARRAYS: &str = "/v1beta/models/m:streamGenerateContent";

    #[test]
    fn what_the_path_says_is_put_in_front() {
        let events = format!("{ARRAYS}?alt=sse");
        for (body, path, expected) in [
            ("{}", ONCE, r#"{"model":"m","stream":false}"#),
            (r#" {"contents":[]}"#, ONCE, r#" {"model":"m","stream":false,"contents":[]}"#),
            (r#"{"a":1}"#, ARRAYS, r#"{"model":"m","stream":true,"alt":"json","a":1}"#),
            (r#"{"a":1}"#, &*events, r#"{"model":"m","stream":true,"a":1}"#),
        ] {
            assert_eq!(completed(body, path).unwrap(), expected);
        }
    }

    #[test]
    fn fields_that_are_there_are_overwritten_where_they_stand() {
        let body = r#"{"a":{"model":"x"},"model":"models/m","stream":"yes","alt":7}"#;
        let expected = r#"{"a":{"model":"x"},"model":"m","stream":false,"alt":null}"#;
        assert_eq!(completed(body, ONCE).unwrap(), expected);
        let model = r#"{"model":"m"}"#;
        assert_eq!(completed(model, ONCE).unwrap(), r#"{"stream":false,"model":"m"}"#);
        let array = completed(r#"{"alt":1}"#, ARRAYS).unwrap();
        assert_eq!(array, r#"{"model":"m","stream":true,"alt":"json"}"#);
    }

    #[test]
    fn another_model_than_the_paths_is_refused() {
        let bad = completed(r#"{"model":"models/n"}"#, ONCE).unwrap_err();
        assert_eq!(bad.message, "`model` is `n`, but the path names `m`");
        let bare = completed(r#"{"model":"models/n"}"#, "/v1beta/models:countTokens").unwrap();
        assert_eq!(bare, r#"{"stream":false,"model":"n"}"#);
        let none = completed("{}", "/v1beta/models:countTokens").unwrap();
        assert_eq!(none, r#"{"stream":false}"#);
    }

    #[test]
    fn what_is_no_object_stays_and_what_is_nearly_one_is_mended() {
        for body in ["", "[]", "7", "{", "\"x\"", "{\"a\":}"] {
            assert_eq!(completed(body, ONCE).unwrap(), body);
        }
        let odd = "{\"a\":\"\\ud83c\"}";
        assert!(completed(odd, ONCE).unwrap().starts_with(r#"{"model":"m","stream":false,"a":"#));
    }
}
