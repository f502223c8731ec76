//! All faults of a body that a stranger has sent, reported at once.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
};

use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::value::RawValue;

use super::limits::Unfit;
use crate::json::{
    clip,
    fields::{self, Text},
};

/// The faults of a body. As JSON they are the `details` of an error in the form of stock servers;
/// as text they are for the sender of the body.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "camelCase")]
pub struct Invalid {
    /// The fields that are missing, as paths such as `participant.id`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// The fields that may not be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<&'static str>,
    /// The faults of the others, by path.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub field_errors: BTreeMap<String, Vec<String>>,
    /// Why nothing could be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// The most bytes of text about one field.
const MAX_WORDS: usize = 256;
/// The most bytes of text about a whole body.
const MAX_TEXT: usize = 1024;

impl Invalid {
    /// It, as the `details` of an error.
    pub fn details(&self) -> serde_json::Value {
        // Plain strings always serialise.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// The fault of a body of which nothing could be read.
    pub(super) fn cause(cause: impl Display) -> Self {
        let cause = clip(&cause.to_string(), MAX_WORDS).to_owned();
        Self { cause: Some(cause), ..Self::default() }
    }

    /// The value if there are no faults, or else the faults.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self == Self::default() { Ok(value) } else { Err(self) }
    }

    pub(super) fn add(&mut self, path: &str, words: &str) {
        let words = clip(words, MAX_WORDS).to_owned();
        self.field_errors.entry(path.to_owned()).or_default().push(words);
    }

    /// Adds the fault of a field, if its check has failed.
    pub(super) fn hold(&mut self, path: &str, check: Result<(), Unfit>) {
        if let Err(unfit) = check {
            self.add(path, &unfit.to_string());
        }
    }

    /// Reads an optional value.
    pub(super) fn optional<'a, T: Deserialize<'a>>(
        &mut self,
        path: &str,
        raw: Option<&'a RawValue>,
    ) -> Option<T> {
        match fields::value(raw?, path) {
            Ok(value) => Some(value),
            Err(bad) => {
                let path = bad.param.as_deref().unwrap_or(path);
                let named = format!("`{path}`: ");
                self.add(path, bad.message.strip_prefix(&named).unwrap_or(&bad.message));
                None
            }
        }
    }

    /// Reads an optional object. Without the check serde would also accept a list of the fields'
    /// values.
    pub(super) fn optional_object<'a, T: Deserialize<'a>>(
        &mut self,
        path: &str,
        raw: Option<&'a RawValue>,
    ) -> Option<T> {
        if raw.is_some_and(|raw| !raw.get().starts_with('{')) {
            self.add(path, "must be an object");
            return None;
        }
        self.optional(path, raw)
    }

    /// Reads a required value, and notes where it is missing.
    pub(super) fn required<'a, T: Deserialize<'a>>(
        &mut self,
        path: &str,
        raw: Option<&'a RawValue>,
    ) -> Option<T> {
        if raw.is_none() {
            self.required.push(path.to_owned());
        }
        self.optional(path, raw)
    }

    /// Reads a required text and checks it; empty if it cannot be read.
    pub(super) fn text(
        &mut self,
        path: &str,
        raw: Option<&RawValue>,
        check: impl FnOnce(&str) -> Result<(), Unfit>,
    ) -> String {
        let text = self.required::<Text<'_>>(path, raw);
        self.fit(path, text, check).unwrap_or_default()
    }

    /// Reads an optional text and checks it.
    pub(super) fn text_if(
        &mut self,
        path: &str,
        raw: Option<&RawValue>,
        check: impl FnOnce(&str) -> Result<(), Unfit>,
    ) -> Option<String> {
        let text = self.optional::<Text<'_>>(path, raw);
        self.fit(path, text, check)
    }

    fn fit(
        &mut self,
        path: &str,
        text: Option<Text<'_>>,
        check: impl FnOnce(&str) -> Result<(), Unfit>,
    ) -> Option<String> {
        let Text(text) = text?;
        self.hold(path, check(&text));
        Some(text.into_owned())
    }
}

impl Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cause = self.cause.iter().cloned();
        let required = self.required.iter().map(|path| format!("`{path}` is missing"));
        let forbidden = self.forbidden.iter().map(|path| format!("`{path}` must not be there"));
        let wrong = self.field_errors.iter().map(|(path, words)| sentence(path, words));
        let all: Vec<String> = cause.chain(required).chain(forbidden).chain(wrong).collect();
        f.write_str(clip(&all.join("; "), MAX_TEXT))
    }
}

fn sentence(path: &str, words: &[String]) -> String {
    let words = words.join(" and ");
    let between = if words.starts_with("must") { "" } else { ":" };
    format!("`{path}`{between} {words}")
}

/// Reads the fields of a body that must be an object.
pub(super) fn object<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Invalid> {
    let text = str::from_utf8(body).map_err(|error| {
        Invalid::cause(format_args!("the body is not UTF-8 (byte {})", error.valid_up_to()))
    })?;
    if text.trim_ascii().is_empty() {
        return Err(Invalid::cause("the body is empty: it must be a JSON object"));
    }
    let not_json = |error| Invalid::cause(format_args!("the body is not JSON: {error}"));
    if !text.trim_ascii_start().starts_with('{') {
        // Without this check serde would also accept a list of the fields' values.
        serde_json::from_str::<IgnoredAny>(text).map_err(not_json)?;
        return Err(Invalid::cause("the body must be a JSON object"));
    }
    serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => Invalid::cause(error),
        false => not_json(error),
    })
}

/// Whether a field is present, with any value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present(pub(super) bool);

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self(true))
    }
}
