//! The request as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{conversation, tools};
use crate::{
    Context,
    chat_request::{ChatRequest, JsonSchema, ResponseFormat, StreamOptions},
    ids,
};

/// The request in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: Request<'_> = fields::body(body)?;
    fields::refuse(&[("mcp_servers", request.mcp_servers)], "cannot be reached from here")?;
    let tools = tools::tools(request.tools.as_deref().unwrap_or_default())?;
    let choice = tools::choice(request.tool_choice, &tools)?;
    let stream = request.stream.unwrap_or(false);
    let request = ChatRequest {
        model: fields::text(request.model, "model")?,
        messages: conversation::messages(request.system, request.messages)?,
        response_format: request.response_format()?,
        max_tokens: request.max_tokens.map(|raw| fields::value(raw, "max_tokens")).transpose()?,
        temperature: request.temperature,
        top_p: request.top_p,
        top_k: request.top_k,
        stop: request.stop_sequences.filter(|stop| stop.get() != "[]"),
        user: request.user()?,
        tools,
        tool_choice: choice.mode,
        parallel_tool_calls: choice.one_at_a_time.then_some(false),
        stream,
        stream_options: StreamOptions::with_usage(stream),
        ..ChatRequest::default()
    };
    Ok(json::write(&request).into_bytes())
}

/// For each message that the request becomes: the index of the client's message that it is made
/// from.
pub(super) fn origins(body: &[u8]) -> Vec<Option<usize>> {
    let request = fields::body::<Request<'_>>(body);
    let messages =
        request.and_then(|request| conversation::messages(request.system, request.messages));
    messages.into_iter().flatten().map(|message| message.origin).collect()
}

/// The fields of the body of `POST /v1/messages` that are carried over.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_k: Option<&'a RawValue>,
    stop_sequences: Option<&'a RawValue>,
    stream: Option<bool>,
    metadata: Option<&'a RawValue>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    output_format: Option<&'a RawValue>,
    output_config: Option<&'a RawValue>,
    mcp_servers: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    fn user(&self) -> Result<Option<Cow<'a, str>>, BadRequest> {
        let Some(raw) = self.metadata else { return Ok(None) };
        let metadata: Metadata<'a> = fields::value(raw, "metadata")?;
        Ok(metadata.user_id.map(|Text(id)| ids::at_most(id, ids::OPENAI_ID)))
    }

    /// The schema of the answer. If both fields have one, the newer `output_config` counts.
    fn response_format(&self) -> Result<Option<ResponseFormat<'a>>, BadRequest> {
        let config: Option<OutputConfig<'a>> =
            self.output_config.map(|raw| fields::value(raw, "output_config")).transpose()?;
        let newer =
            config.and_then(|config| config.format).map(|raw| (raw, "output_config.format"));
        let older = self.output_format.map(|raw| (raw, "output_format"));
        newer.or(older).map(|(raw, path)| json_schema(raw, path)).transpose()
    }
}

fn json_schema<'a>(raw: &'a RawValue, path: &str) -> Result<ResponseFormat<'a>, BadRequest> {
    let format: Format<'a> = fields::value(raw, path)?;
    if format.kind.0 != "json_schema" {
        let message = format!("`{path}.type` must be `json_schema`");
        return Err(BadRequest::new(format!("{path}.type"), message));
    }
    let name = Cow::Borrowed("answer");
    let json_schema = JsonSchema {
        name,
        description: None,
        schema: Cow::Borrowed(format.schema),
        strict: Some(true),
    };
    Ok(ResponseFormat::JsonSchema { json_schema })
}

#[derive(Deserialize)]
struct Metadata<'a> {
    #[serde(borrow)]
    user_id: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct OutputConfig<'a> {
    #[serde(borrow)]
    format: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Format<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    schema: &'a RawValue,
}
