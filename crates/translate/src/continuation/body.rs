//! Edits of a request's body. All bytes that need no change stay as the client sent them.

use std::{collections::BTreeMap, ops::Range};

use bytes::Bytes;
use protocol::{
    json::{
        self, BadRequest,
        fields::{self, TextOrList},
    },
    openai::{Edit, object_end, span, splice},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::CannotContinue;

/// Fields whose effect holds for an answer as a whole, under all names that model servers have for them. Another
/// provider cannot resume such an answer in the middle.
const OF_THE_WHOLE: [&str; 13] = [
    "logprobs",
    "functions",
    "audio",
    "suffix",
    "grammar",
    "json_schema",
    "structured_outputs",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "regex",
    "ebnf",
];

/// A field that may have such an effect, and a test whether a value of it has none.
pub(super) type Structured = (&'static str, fn(&RawValue) -> bool);

/// A body, and the edits that are to be made to it.
pub(super) struct BodyEdits<'a> {
    body: &'a str,
    fields: BTreeMap<String, &'a RawValue>,
    edits: Vec<Edit>,
}

impl<'a> BodyEdits<'a> {
    /// A body without edits.
    pub(super) fn of(body: &'a [u8]) -> Result<Self, CannotContinue> {
        let body = str::from_utf8(body).map_err(|_| unreadable())?;
        Ok(Self { body, fields: fields::body(body.as_bytes())?, edits: Vec::new() })
    }

    /// A field of the body as raw JSON; `None` if it is missing.
    pub(super) fn field(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.get(name).copied()
    }

    /// A field that is a list.
    pub(super) fn list(
        &self,
        name: &str,
    ) -> Result<(&'a RawValue, Vec<&'a RawValue>), CannotContinue> {
        let list = self.field(name).filter(|raw| raw.get().starts_with('['));
        let list = list.ok_or_else(unreadable)?;
        Ok((list, fields::value(list, name)?))
    }

    /// Whether a field asks for something.
    pub(super) fn asks(&self, name: &str) -> bool {
        asks(self.field(name))
    }

    /// Refuses requests whose answers are not continued in any shape. `structured` has the further fields of this
    /// shape that prevent it.
    pub(super) fn refuse(&self, structured: &[Structured]) -> Result<(), CannotContinue> {
        if self.field("stream").is_none_or(|raw| raw.get() != "true") {
            return Err(CannotContinue::NoStream);
        }
        let several = |raw: &RawValue| !matches!(raw.get(), "null" | "0" | "1");
        if ["n", "best_of"].iter().filter_map(|name| self.field(name)).any(several) {
            return Err(CannotContinue::SeveralChoices);
        }
        let of_shape = structured.iter().find(|(name, is_nothing)| {
            self.asks(name) && !self.field(name).is_some_and(is_nothing)
        });
        let of_shape = of_shape.map(|(name, _)| *name);
        let field = of_shape.or_else(|| OF_THE_WHOLE.into_iter().find(|name| self.asks(name)));
        field.map_or(Ok(()), |name| Err(CannotContinue::Asked(name)))
    }

    /// Subtracts the delivered tokens from the limits with these names. A limit that is not a positive count means no
    /// limit, and stays.
    ///
    /// # Errors
    /// [`CannotContinue::Full`] when nothing is left.
    pub(super) fn lower_limits(
        &mut self,
        names: &[&str],
        delivered: u64,
    ) -> Result<(), CannotContinue> {
        for name in names {
            let Some((raw, limit)) = self.count(name).filter(|(_, count)| *count > 0) else {
                continue;
            };
            match limit.saturating_sub(delivered) {
                0 => return Err(CannotContinue::Full),
                left => self.replace(raw, left.to_string()),
            }
        }
        Ok(())
    }

    /// Subtracts the delivered tokens from a minimum.
    pub(super) fn lower_minimum(&mut self, name: &str, delivered: u64) {
        if let Some((raw, count)) = self.count(name) {
            self.replace(raw, count.saturating_sub(delivered).to_string());
        }
    }

    /// Replaces a value.
    pub(super) fn replace(&mut self, value: &RawValue, text: String) {
        self.edits.push(Edit { span: span(self.body, value), text });
    }

    /// Appends to a string.
    pub(super) fn append_text(&mut self, string: &RawValue, more: &str) {
        let mut text = String::with_capacity(more.len() + 16);
        json::push_escaped(&mut text, more);
        self.insert(before_end(self.body, string), text);
    }

    /// Appends items to a list. `items` is JSON with commas between them.
    pub(super) fn append_items(&mut self, list: &RawValue, items: &str) {
        let is_empty = list.get().trim_start_matches('[').trim_ascii_start().starts_with(']');
        let comma = if is_empty { "" } else { "," };
        self.insert(before_end(self.body, list), format!("{comma}{items}"));
    }

    /// Sets a field of the body. `value` is JSON.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        match self.field(name) {
            Some(old) => self.replace(old, value.to_owned()),
            None => {
                let end = object_end(self.body.as_bytes()).unwrap_or_default();
                self.insert(end, format!(r#","{name}":{value}"#));
            }
        }
    }

    /// The body with all edits made.
    pub(super) fn made(self) -> Vec<u8> {
        splice(&Bytes::copy_from_slice(self.body.as_bytes()), self.edits).into()
    }

    fn count(&self, name: &str) -> Option<(&'a RawValue, u64)> {
        let raw = self.field(name)?;
        Some((raw, raw.get().parse().ok()?))
    }

    fn insert(&mut self, at: usize, text: String) {
        self.edits.push(Edit { span: Range { start: at, end: at }, text });
    }
}

/// The offset at which more can be added to a string or a list: before its last character.
fn before_end(body: &str, value: &RawValue) -> usize {
    span(body, value).end - 1
}

/// Whether a field asks for something.
pub(super) fn asks(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| !matches!(raw.get(), "null" | "false" | "[]" | "{}" | "\"\""))
}

/// A message of a conversation.
#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    role: Option<fields::Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    /// Whether it is the assistant's, and has no calls of tools.
    pub(super) fn is_assistants(&self) -> bool {
        self.role.as_ref().is_some_and(|role| role.0 == "assistant") && !asks(self.tool_calls)
    }

    pub(super) fn content(&self) -> Result<&'a RawValue, CannotContinue> {
        self.content.ok_or_else(unreadable)
    }

    /// The text with which its content ends: all of it, or the last part; `None` if the last part
    /// is not text.
    pub(super) fn end(&self) -> Result<Option<&'a RawValue>, CannotContinue> {
        let content = self.content()?;
        Ok(match TextOrList::read(content, "messages")? {
            TextOrList::Text(_) => Some(content),
            TextOrList::List(parts) => parts.last().and_then(|part| part_text(part)),
        })
    }
}

/// The text of a part of content.
fn part_text(part: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Part<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
    }
    let part: Part<'_> = serde_json::from_str(part.get()).ok()?;
    part.text.filter(|text| text.get().starts_with('"'))
}

/// The error for a body that cannot be read, although a provider has answered it.
pub(super) fn unreadable() -> CannotContinue {
    let message = "the request body cannot be read".to_owned();
    CannotContinue::Request(BadRequest { param: None, message })
}
