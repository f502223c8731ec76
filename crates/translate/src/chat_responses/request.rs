//! The request, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::{Item, items};
use crate::{
    context::Context,
    from_chat::{Function, JsonSchema, ResponseFormat, forced_function, refuse_more_than_text},
};

/// Makes a Responses request of a Chat Completions request. See the [module](super) for what
/// becomes of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: Request<'_> = fields::body(body)?;
    request.refuse()?;
    Ok(json::write(&request.into_responses()?).into_bytes())
}

/// Why a parameter is refused.
const NOT_IN_RESPONSES: &str = "cannot be carried over to the Responses API of the model server";

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    messages: Option<&'a RawValue>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<&'a RawValue>,
    verbosity: Option<Text<'a>>,
    reasoning_effort: Option<Text<'a>>,
    max_completion_tokens: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    user: Option<Text<'a>>,
    stream: Option<bool>,
    stop: Option<&'a RawValue>,
    n: Option<&'a RawValue>,
    logprobs: Option<&'a RawValue>,
    top_logprobs: Option<&'a RawValue>,
    logit_bias: Option<&'a RawValue>,
    functions: Option<&'a RawValue>,
    function_call: Option<&'a RawValue>,
    audio: Option<&'a RawValue>,
    modalities: Option<&'a RawValue>,
    web_search_options: Option<&'a RawValue>,
}

/// The body of `POST /v1/responses`.
#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: Cow<'a, str>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextOptions<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Cow<'a, str>>,
    stream: bool,
    store: bool,
}

/// A function that may be called. Without `strict`, Responses takes it as set, and Chat
/// Completions does not: so it is always written.
#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    parameters: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoice<'a> {
    Mode(Cow<'a, str>),
    Function(Forced<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Forced<'a> {
    name: Cow<'a, str>,
}

#[derive(Serialize)]
struct TextOptions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verbosity: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonObject,
    JsonSchema {
        name: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<Cow<'a, str>>,
        schema: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: Cow<'a, str>,
}

impl<'a> Request<'a> {
    fn refuse(&self) -> Result<(), BadRequest> {
        let parameters = [
            ("stop", self.stop),
            ("n", self.n.filter(|raw| raw.get() != "1")),
            ("logprobs", self.logprobs),
            ("top_logprobs", self.top_logprobs.filter(|raw| raw.get() != "0")),
            ("logit_bias", self.logit_bias),
            ("functions", self.functions),
            ("function_call", self.function_call),
            ("audio", self.audio),
        ];
        fields::refuse(&parameters, NOT_IN_RESPONSES)?;
        refuse_more_than_text(self.modalities, self.web_search_options, NOT_IN_RESPONSES)
    }

    fn into_responses(self) -> Result<ResponsesRequest<'a>, BadRequest> {
        let tools = tools(self.tools.as_deref().unwrap_or_default())?;
        let tool_choice = self.tool_choice.map(tool_choice).transpose()?;
        Ok(ResponsesRequest {
            model: self.model.0,
            input: items(self.messages)?,
            tool_choice: tool_choice.filter(|_| !tools.is_empty()),
            parallel_tool_calls: self.parallel_tool_calls.filter(|_| !tools.is_empty()),
            tools,
            text: text(self.response_format, self.verbosity)?,
            reasoning: self.reasoning_effort.map(|Text(effort)| Reasoning { effort }),
            max_output_tokens: self.max_completion_tokens.or(self.max_tokens),
            temperature: self.temperature,
            top_p: self.top_p,
            metadata: self.metadata,
            user: self.user.map(|Text(user)| user),
            stream: self.stream.unwrap_or(false),
            store: false,
        })
    }
}

fn tools<'a>(asked: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    Function::all(asked, |Function { name, description, parameters, strict }| Tool {
        name,
        description,
        parameters,
        strict: strict.unwrap_or(false),
    })
}

fn tool_choice(raw: &RawValue) -> Result<ToolChoice<'_>, BadRequest> {
    if raw.get().starts_with('"') {
        return fields::text(Some(raw), "tool_choice").map(ToolChoice::Mode);
    }
    let name = forced_function(raw)?;
    Ok(ToolChoice::Function(Forced { name }))
}

fn text<'a>(
    format: Option<&'a RawValue>,
    verbosity: Option<Text<'a>>,
) -> Result<Option<TextOptions<'a>>, BadRequest> {
    let format = format.map(response_format).transpose()?.flatten();
    let verbosity = verbosity.map(|Text(verbosity)| verbosity);
    let asked = format.is_some() || verbosity.is_some();
    Ok(asked.then_some(TextOptions { format, verbosity }))
}

fn response_format(raw: &RawValue) -> Result<Option<Format<'_>>, BadRequest> {
    let asked = ResponseFormat::read(raw)?;
    match (asked.kind.0.as_ref(), asked.json_schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => Ok(Some(Format::JsonObject)),
        ("json_schema", Some(schema)) => Format::of(schema).map(Some),
        (kind, _) => {
            let kind = json::clip(kind, 64);
            let message = format!(
                "`response_format` of type `{kind}` must be text, json_object, or json_schema \
                 with a `json_schema`"
            );
            Err(BadRequest::new("response_format", message))
        }
    }
}

impl<'a> Format<'a> {
    fn of(asked: JsonSchema<'a>) -> Result<Self, BadRequest> {
        Ok(Format::JsonSchema {
            schema: asked.schema()?,
            name: asked.name.map_or("answer".into(), |Text(name)| name),
            description: asked.description.map(|Text(text)| text),
            strict: asked.strict,
        })
    }
}
