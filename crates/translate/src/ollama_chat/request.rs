//! The request, as a whole.

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::conversation;
use crate::{
    Context,
    chat_request::{ChatRequest, FunctionTool, StreamOptions, Tool},
    ollama::{
        options::Options,
        settings::{Think, format},
    },
    schema,
};

/// Makes a Chat Completions request from a request to `/api/chat`. The [module](super) says what
/// becomes of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be read.
pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest> {
    let given: Request<'_> = fields::body(body)?;
    let options = Options::read(body, given.options)?;
    let request = ChatRequest {
        model: given.model.0,
        messages: conversation::messages(given.messages)?,
        tools: tools(given.tools.as_deref().unwrap_or_default())?,
        response_format: format(given.format)?,
        stream: context.streaming,
        stream_options: StreamOptions::with_usage(context.streaming),
        ..ChatRequest::default()
    };
    let request = Think::read(given.think)?.apply(options.apply(request));
    Ok(json::write(&request).into_bytes())
}

/// For each message that the request becomes: the index of the client's message that it is made
/// from.
pub(super) fn origins(body: &[u8]) -> Vec<Option<usize>> {
    let given = fields::body::<Request<'_>>(body);
    let messages = given.and_then(|given| conversation::messages(given.messages));
    messages.into_iter().flatten().map(|message| message.origin).collect()
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    messages: Option<&'a RawValue>,
    tools: Option<Vec<&'a RawValue>>,
    format: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
    think: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct GivenTool<'a> {
    function: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct GivenFunction<'a> {
    name: Option<&'a RawValue>,
    description: Option<Text<'a>>,
    parameters: Option<&'a RawValue>,
}

fn tools<'a>(given: &[&'a RawValue]) -> Result<Vec<Tool<'a>>, BadRequest> {
    let given = given.iter().enumerate();
    given.map(|(at, raw)| tool(raw, &format!("tools[{at}]"))).collect()
}

fn tool<'a>(raw: &'a RawValue, path: &str) -> Result<Tool<'a>, BadRequest> {
    let tool: GivenTool<'a> = fields::value(raw, path)?;
    let path = format!("{path}.function");
    let function = fields::object(tool.function, &path)?;
    let GivenFunction { name, description, parameters } = fields::value(function, &path)?;
    Ok(Tool::new(FunctionTool {
        name: fields::text(name, format!("{path}.name"))?,
        description: description.map(|Text(text)| text),
        parameters: schema::of_object(parameters, &format!("{path}.parameters"))?,
        strict: None,
    }))
}
