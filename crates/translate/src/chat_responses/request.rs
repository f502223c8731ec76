//! The request, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::input::{Item, items};
use crate::{
    Context,
    chat_body::ChatBody,
    chat_request::FunctionTool,
    from_chat::{JsonSchema, ResponseFormat, forced_function},
    ids,
    schema::Schema,
};

/// Makes a Responses request from a Chat Completions request. The [module](super) says what becomes
/// of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let body: ChatBody<'_> = fields::body(body)?;
    fields::refuse(&[("stop", body.stop)], NOT_IN_RESPONSES)?;
    body.refuse(&["1"], NOT_IN_RESPONSES)?;
    let tools = tools(&body.tools()?)?;
    let effort = body.optional(body.reasoning_effort, "reasoning_effort")?;
    let user = body.optional(body.user, "user")?;
    let request = ResponsesRequest {
        model: fields::text(body.model, "model")?,
        input: items(body.messages)?,
        // Left out without tools, because servers refuse the field then.
        tool_choice: body.tool_choice.map(tool_choice).transpose()?.filter(|_| !tools.is_empty()),
        parallel_tool_calls: body.parallel_tool_calls()?.filter(|_| !tools.is_empty()),
        tools,
        text: text(body.response_format, body.optional(body.verbosity, "verbosity")?)?,
        reasoning: effort.map(|Text(effort)| Reasoning { effort }),
        max_output_tokens: body.max_tokens().map(|(raw, _)| raw),
        temperature: body.temperature,
        top_p: body.top_p,
        metadata: body.metadata,
        user: user.map(|Text(user)| ids::at_most(user, ids::OPENAI_ID)),
        stream: body.streams()?,
        store: false,
    };
    Ok(json::write(&request).into_bytes())
}

const NOT_IN_RESPONSES: &str = "cannot be carried over to the Responses API of the model server";

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

/// A function that may be called. `strict` is always written: if it is missing, Responses assumes
/// true, but Chat Completions false.
#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct Tool<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    parameters: Schema<'a>,
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ToolChoice<'a> {
    Mode(Cow<'a, str>),
    Function(ForcedFunction<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "function")]
struct ForcedFunction<'a> {
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

fn tools<'a>(list: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    FunctionTool::all(list, |FunctionTool { name, description, parameters, strict }| Tool {
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
    Ok(ToolChoice::Function(ForcedFunction { name }))
}

fn text<'a>(
    format: Option<&'a RawValue>,
    verbosity: Option<Text<'a>>,
) -> Result<Option<TextOptions<'a>>, BadRequest> {
    let format = format.map(response_format).transpose()?.flatten();
    let verbosity = verbosity.map(|Text(verbosity)| verbosity);
    let has_options = format.is_some() || verbosity.is_some();
    Ok(has_options.then_some(TextOptions { format, verbosity }))
}

fn response_format(raw: &RawValue) -> Result<Option<Format<'_>>, BadRequest> {
    let format = ResponseFormat::read(raw)?;
    match (format.kind.0.as_ref(), format.json_schema) {
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
    fn of(format: JsonSchema<'a>) -> Result<Self, BadRequest> {
        Ok(Format::JsonSchema {
            schema: format.schema()?,
            name: format.name.map_or("answer".into(), |Text(name)| name),
            description: format.description.map(|Text(text)| text),
            strict: format.strict,
        })
    }
}
