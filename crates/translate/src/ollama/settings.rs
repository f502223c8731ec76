//! `format` and `think`.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self},
};
use serde_json::value::RawValue;

use crate::chat_request::{ChatRequest, JsonSchema, ResponseFormat, TemplateWords};

/// The form that an answer must have: `"json"`, or a schema. An empty text means no form.
///
/// # Errors
/// [`BadRequest`] for anything else.
pub(crate) fn format(raw: Option<&RawValue>) -> Result<Option<ResponseFormat<'_>>, BadRequest> {
    let Some(raw) = raw else { return Ok(None) };
    match raw.get() {
        "\"\"" => Ok(None),
        "\"json\"" => Ok(Some(ResponseFormat::JsonObject)),
        text if text.starts_with('{') => {
            let name = Cow::Borrowed("answer");
            let json_schema = JsonSchema {
                name,
                description: None,
                schema: Cow::Borrowed(raw),
                strict: Some(true),
            };
            Ok(Some(ResponseFormat::JsonSchema { json_schema }))
        }
        _ => Err(BadRequest::new("format", "`format` must be \"json\" or a JSON schema")),
    }
}

/// Whether the model thinks before it answers, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Think<'a> {
    /// As the provider does by itself.
    Default,
    /// Whether it thinks.
    Set(bool),
    /// `low`, `medium` or `high`.
    Effort(Cow<'a, str>),
}

impl<'a> Think<'a> {
    /// Reads `think`.
    ///
    /// # Errors
    /// [`BadRequest`] for what is neither a boolean nor one of the three words.
    pub(crate) fn read(raw: Option<&'a RawValue>) -> Result<Self, BadRequest> {
        let Some(raw) = raw else { return Ok(Self::Default) };
        match raw.get() {
            "true" => return Ok(Self::Set(true)),
            "false" => return Ok(Self::Set(false)),
            _ => {}
        }
        let effort = fields::text(Some(raw), "think");
        let known = effort.ok().filter(|it| matches!(&**it, "low" | "medium" | "high"));
        let bad = || {
            let given = json::clip(raw.get(), 64);
            let words = format!(
                "`think` is {given}; it must be true, false, \"low\", \"medium\" or \"high\""
            );
            BadRequest::new("think", words)
        };
        known.map(Self::Effort).ok_or_else(bad)
    }

    /// Puts it into a request.
    pub(crate) fn apply(self, request: ChatRequest<'a>) -> ChatRequest<'a> {
        match self {
            Self::Default => request,
            Self::Set(enable_thinking) => {
                let words = TemplateWords { enable_thinking };
                ChatRequest { chat_template_kwargs: Some(words), ..request }
            }
            Self::Effort(effort) => ChatRequest { reasoning_effort: Some(effort), ..request },
        }
    }
}

/// Whether the client of this body wants the thoughts.
pub(crate) fn shows_thoughts(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct ThinkField<'a> {
        #[serde(borrow)]
        think: Option<&'a RawValue>,
    }
    let given = serde_json::from_slice::<ThinkField<'_>>(body);
    !given.is_ok_and(|given| given.think.is_some_and(|think| think.get() == "false"))
}
