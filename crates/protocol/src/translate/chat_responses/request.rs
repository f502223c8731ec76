//! The request, as a whole.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::input::{Item, items};
use crate::{
    json,
    openai::chat_request::no_parameters,
    translate::{
        BadRequest, Context,
        fields::{self, Text},
    },
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
struct Request<'a> {
    #[serde(borrow)]
    model: Text<'a>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    parallel_tool_calls: Option<bool>,
    #[serde(borrow)]
    response_format: Option<&'a RawValue>,
    #[serde(borrow)]
    verbosity: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_effort: Option<Text<'a>>,
    #[serde(borrow)]
    max_completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    max_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    temperature: Option<&'a RawValue>,
    #[serde(borrow)]
    top_p: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    user: Option<Text<'a>>,
    stream: Option<bool>,
    #[serde(borrow)]
    stop: Option<&'a RawValue>,
    #[serde(borrow)]
    n: Option<&'a RawValue>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    top_logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    logit_bias: Option<&'a RawValue>,
    #[serde(borrow)]
    functions: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
    #[serde(borrow)]
    audio: Option<&'a RawValue>,
    #[serde(borrow)]
    modalities: Option<&'a RawValue>,
    #[serde(borrow)]
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
            ("modalities", self.modalities.filter(|raw| !is_text_alone(raw))),
        ];
        fields::refuse(&parameters, NOT_IN_RESPONSES)?;
        // An empty object asks for a search, too.
        let search = ("web_search_options", self.web_search_options);
        search.1.map_or(Ok(()), |_| {
            Err(BadRequest::new(search.0, format!("`{}` {NOT_IN_RESPONSES}", search.0)))
        })
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

fn is_text_alone(raw: &RawValue) -> bool {
    serde_json::from_str::<Vec<Text<'_>>>(raw.get())
        .is_ok_and(|asked| asked.iter().all(|Text(kind)| kind == "text"))
}

fn tools<'a>(asked: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    asked.iter().enumerate().map(|(at, raw)| tool(raw, &format!("tools[{at}]"))).collect()
}

fn tool<'a>(raw: &'a RawValue, path: &str) -> Result<Tool<'a>, BadRequest> {
    let asked: AskedTool<'a> = fields::value(raw, path)?;
    let function = asked.function.filter(|_| asked.kind.0 == "function").ok_or_else(|| {
        let kind = json::clip(&asked.kind.0, 64);
        let message = format!("`{path}` is of type `{kind}`; only functions can be carried over");
        BadRequest::new(path, message)
    })?;
    Ok(Tool {
        name: fields::text(function.name, format!("{path}.function.name"))?,
        description: function.description.map(|Text(text)| text),
        parameters: function.parameters.unwrap_or(no_parameters()),
        strict: function.strict.unwrap_or(false),
    })
}

fn tool_choice(raw: &RawValue) -> Result<ToolChoice<'_>, BadRequest> {
    if raw.get().starts_with('"') {
        return fields::text(Some(raw), "tool_choice").map(ToolChoice::Mode);
    }
    let asked: AskedTool<'_> = fields::value(raw, "tool_choice")?;
    let function = asked.function.filter(|_| asked.kind.0 == "function").ok_or_else(|| {
        let message = "`tool_choice` must be auto, none, required or one function";
        BadRequest::new("tool_choice", message)
    })?;
    let name = fields::text(function.name, "tool_choice.function.name")?;
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
    let asked: AskedFormat<'_> = fields::value(raw, "response_format")?;
    match (asked.kind.0.as_ref(), asked.json_schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => Ok(Some(Format::JsonObject)),
        ("json_schema", Some(schema)) => schema.format().map(Some),
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

#[derive(Deserialize)]
struct AskedTool<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    function: Option<AskedFunction<'a>>,
}

#[derive(Deserialize)]
struct AskedFunction<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct AskedFormat<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    json_schema: Option<AskedSchema<'a>>,
}

#[derive(Deserialize)]
struct AskedSchema<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    description: Option<Text<'a>>,
    #[serde(borrow)]
    schema: Option<&'a RawValue>,
    strict: Option<bool>,
}

impl<'a> AskedSchema<'a> {
    fn format(self) -> Result<Format<'a>, BadRequest> {
        let path = "response_format.json_schema.schema";
        let missing = || BadRequest::new(path, format!("`{path}` is missing"));
        Ok(Format::JsonSchema {
            name: self.name.map_or("answer".into(), |Text(name)| name),
            description: self.description.map(|Text(text)| text),
            schema: self.schema.ok_or_else(missing)?,
            strict: self.strict,
        })
    }
}
