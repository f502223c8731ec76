//! A Messages request for a provider. Absent fields are left out.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::schema::Schema;

#[derive(Debug, Default, Serialize)]
pub(crate) struct MessageRequest<'a> {
    pub(crate) model: Cow<'a, str>,
    /// Required by the API.
    pub(crate) max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system: Option<Cow<'a, str>>,
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_k: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) stop_sequences: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Metadata<'a>>,
    pub(crate) stream: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    pub(crate) content: Vec<Block<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    User,
    Assistant,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block<'a> {
    Text { text: Cow<'a, str> },
    Thinking { thinking: Cow<'a, str>, signature: Cow<'a, str> },
    RedactedThinking { data: Cow<'a, str> },
    Image { source: Source<'a> },
    Document { source: Source<'a> },
    ToolUse { id: Cow<'a, str>, name: Cow<'a, str>, input: Box<RawValue> },
    ToolResult { tool_use_id: Cow<'a, str>, content: Vec<Block<'a>> },
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Source<'a> {
    Base64 { media_type: Cow<'a, str>, data: Cow<'a, str> },
    Url { url: Cow<'a, str> },
}

#[derive(Debug, Serialize)]
pub(crate) struct Tool<'a> {
    pub(crate) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) input_schema: Schema<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolChoice<'a> {
    /// `auto`, `any`, `none` or `tool`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) disable_parallel_tool_use: bool,
}

#[derive(Debug, Serialize)]
pub(crate) struct OutputConfig<'a> {
    pub(crate) format: Format<'a>,
}

/// A schema that an answer must match.
#[derive(Debug, Serialize)]
pub(crate) struct Format<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) schema: &'a RawValue,
}

#[derive(Debug, Serialize)]
pub(crate) struct Metadata<'a> {
    pub(crate) user_id: Cow<'a, str>,
}
