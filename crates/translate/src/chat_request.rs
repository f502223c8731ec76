//! A Chat Completions request for a provider, with the fields that every server of the API knows.
//! Absent fields are left out, so that the server's own defaults apply.

use std::{borrow::Cow, sync::LazyLock};

use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    ids,
    order::{NO_RESULT, OrderedMessage},
    schema::Schema,
};

#[derive(Debug, Default, Serialize)]
pub(crate) struct ChatRequest<'a> {
    pub(crate) model: Cow<'a, str>,
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_effort: Option<Cow<'a, str>>,
    /// The older name of `max_completion_tokens`, which more servers know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) temperature: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_p: Option<&'a RawValue>,
    /// Not a field of OpenAI, but one that local servers know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) top_k: Option<&'a RawValue>,
    /// As `top_k`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_p: Option<&'a RawValue>,
    /// As `top_k`, by llama.cpp's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeat_penalty: Option<&'a RawValue>,
    /// As `top_k`: variables for the model's own chat template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chat_template_kwargs: Option<TemplateWords>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stop: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seed: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frequency_penalty: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) presence_penalty: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) logit_bias: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<Cow<'a, str>>,
    pub(crate) stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stream_options: Option<StreamOptions>,
}

/// The text of a tool's message whose result has only pictures.
pub(crate) const PICTURES_FOLLOW: &str = "The result is in the next message.";

/// How a tool's message begins when the tool has failed.
pub(crate) const FAILED: &str = "Error: ";

/// The variables that local servers pass to the chat template of a model.
#[derive(Debug, Serialize)]
pub(crate) struct TemplateWords {
    /// Whether the model thinks before it answers.
    pub(crate) enable_thinking: bool,
}

/// The extras of a stream beside the text.
#[derive(Debug, Serialize)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: bool,
}

impl StreamOptions {
    /// Asks for the usage at the end of a stream; `None` for a request without a stream.
    pub(crate) fn with_usage(stream: bool) -> Option<Self> {
        stream.then_some(Self { include_usage: true })
    }
}

/// One message. `content` is `null` if the message has only tool calls.
#[derive(Debug, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    pub(crate) content: Option<Content<'a>>,
    /// An assistant's thoughts before its text; not a field of OpenAI, but one that local servers
    /// put into their templates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_content: Option<Cow<'a, str>>,
    /// The thoughts with the fields by which their provider recognises them, if the client has kept
    /// those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_details: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<Cow<'a, str>>,
    /// The index of the client's own message or item from which it was made; `None` if there is no
    /// single one.
    #[serde(skip)]
    pub(crate) origin: Option<usize>,
}

impl<'a> Message<'a> {
    /// A message with content only.
    pub(crate) fn new(role: Role, content: Content<'a>) -> Self {
        Self { content: Some(content), ..Self::empty(role) }
    }

    /// A message without content, to be filled.
    pub(crate) fn empty(role: Role) -> Self {
        Self {
            role,
            content: None,
            reasoning_content: None,
            reasoning_details: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
            origin: None,
        }
    }

    pub(crate) fn tool(call_id: Cow<'a, str>, content: Cow<'a, str>) -> Self {
        let message = Self::new(Role::Tool, Content::Text(content));
        Self { tool_call_id: Some(ids::at_most(call_id, ids::CHAT_CALL_ID)), ..message }
    }

    /// Appends thoughts to those that the message has.
    pub(crate) fn think(&mut self, thought: Cow<'a, str>) {
        self.reasoning_content = Some(match self.reasoning_content.take() {
            Some(before) => join(before, "\n\n", &thought),
            None => thought,
        });
    }

    /// Adds thoughts, if there are any.
    pub(crate) fn think_if_any(&mut self, thought: Cow<'a, str>) {
        if !thought.is_empty() {
            self.think(thought);
        }
    }

    /// Whether it has more than thoughts, which alone do not make a message.
    pub(crate) fn says_something(&self) -> bool {
        self.content.is_some() || !self.tool_calls.is_empty()
    }
}

impl OrderedMessage for Message<'_> {
    fn calls(&self) -> Vec<&str> {
        self.tool_calls.iter().map(|call| &*call.id).collect()
    }

    fn answers(&self) -> Option<&str> {
        self.tool_call_id.as_deref()
    }

    fn into_words(self) -> Self {
        Self { role: Role::User, tool_call_id: None, ..self }
    }

    fn without_result(&self, call: usize) -> Self {
        let id = self.tool_calls.get(call).map(|call| call.id.to_string());
        let message = Self::tool(id.unwrap_or_default().into(), NO_RESULT.into());
        Self { origin: self.origin, ..message }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl<'a> Content<'a> {
    /// A string, if all parts are text; each part begins a line. Every server reads a string, but
    /// not every one reads a list.
    pub(crate) fn of_parts(parts: Vec<Part<'a>>) -> Self {
        if parts.iter().any(|part| !matches!(part, Part::Text { .. })) {
            return Self::Parts(parts);
        }
        let mut texts = parts.into_iter().filter_map(Part::into_text);
        let Some(first) = texts.next() else { return Self::Text(Cow::Borrowed("")) };
        Self::Text(texts.fold(first, |all, text| join(all, "\n", &text)))
    }
}

/// Both texts with `between` between them.
pub(crate) fn join<'a>(first: Cow<'a, str>, between: &str, second: &str) -> Cow<'a, str> {
    let mut first = first.into_owned();
    first.push_str(between);
    first.push_str(second);
    Cow::Owned(first)
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: File<'a> },
}

impl<'a> Part<'a> {
    fn into_text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Text { text } => Some(text),
            Self::ImageUrl { .. } | Self::InputAudio { .. } | Self::File { .. } => None,
        }
    }
}

/// The URL of an image, or the image itself as a `data:` URL.
#[derive(Debug, Serialize)]
pub(crate) struct ImageUrl<'a> {
    pub(crate) url: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<Cow<'a, str>>,
}

/// Sound in base64.
#[derive(Debug, Serialize)]
pub(crate) struct InputAudio<'a> {
    pub(crate) data: Cow<'a, str>,
    /// `wav` or `mp3`.
    pub(crate) format: &'static str,
}

/// A document as a `data:` URL.
#[derive(Debug, Serialize)]
pub(crate) struct File<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) filename: Option<Cow<'a, str>>,
    pub(crate) file_data: Cow<'a, str>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
    /// The object that the call's provider expects back with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    /// JSON, as text.
    arguments: Cow<'a, str>,
}

impl<'a> ToolCall<'a> {
    /// A call of a function. `arguments` is JSON as text.
    pub(crate) fn new(id: Cow<'a, str>, name: Cow<'a, str>, arguments: Cow<'a, str>) -> Self {
        let id = ids::at_most(id, ids::CHAT_CALL_ID);
        let function = Function { name, arguments };
        Self { id, kind: "function", function, extra_content: None }
    }

    /// The same call with the object that its provider expects back.
    pub(crate) fn with_extra(self, extra_content: Option<Box<RawValue>>) -> Self {
        Self { extra_content, ..self }
    }
}

#[derive(Debug, Serialize)]
pub(crate) struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    pub(crate) function: FunctionTool<'a>,
}

impl<'a> Tool<'a> {
    pub(crate) fn new(function: FunctionTool<'a>) -> Self {
        Self { kind: "function", function }
    }
}

/// The name, description and parameters of a function.
#[derive(Debug, Serialize)]
pub(crate) struct FunctionTool<'a> {
    pub(crate) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) parameters: Schema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strict: Option<bool>,
}

pub(crate) fn no_parameters() -> &'static RawValue {
    static SCHEMA: LazyLock<Box<RawValue>> =
        LazyLock::new(|| constant(r#"{"type":"object","properties":{}}"#));
    &SCHEMA
}

/// The schema of an object whose one property, `input`, is a string.
pub(crate) fn input_parameter() -> &'static RawValue {
    static SCHEMA: LazyLock<Box<RawValue>> = LazyLock::new(|| {
        constant(
            r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}"#,
        )
    });
    &SCHEMA
}

#[expect(clippy::expect_used, reason = "called with the constants above only, which are JSON")]
fn constant(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).expect("a constant is JSON")
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ResponseFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: JsonSchema<'a> },
}

/// A schema that an answer must match.
#[derive(Debug, Serialize)]
pub(crate) struct JsonSchema<'a> {
    pub(crate) name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) schema: Schema<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strict: Option<bool>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum ToolChoice<'a> {
    /// `auto`, `none` or `required`.
    Mode(&'static str),
    Function(ForcedFunction<'a>),
}

#[derive(Debug, Serialize)]
pub(crate) struct ForcedFunction<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionName<'a>,
}

#[derive(Debug, Serialize)]
struct FunctionName<'a> {
    name: Cow<'a, str>,
}

impl<'a> ToolChoice<'a> {
    pub(crate) fn function(name: Cow<'a, str>) -> Self {
        Self::Function(ForcedFunction { kind: "function", function: FunctionName { name } })
    }
}
