//! The request as a whole.

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    config::{Config, Defaults},
    conversation,
    tools::{self, Choice},
};
use crate::{
    Context,
    chat_request::{ChatRequest, StreamOptions},
};

/// The request in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: Request<'_> = fields::body(body)?;
    let cached = ("cachedContent", request.cached_content);
    fields::refuse(&[cached], "names content that is kept at Google's; send the content itself")?;
    let config = Config::read(request.generation_config, &fields::body::<Defaults<'_>>(body)?)?;
    let tools = tools::tools(request.tools)?;
    let Choice { mode, tools } = tools::choice(request.tool_config, tools)?;
    let stream = request.stream.unwrap_or(false);
    let chat = ChatRequest {
        model: request.model.map(|Text(model)| model).unwrap_or_default(),
        messages: conversation::messages(request.system_instruction, request.contents)?,
        tools,
        tool_choice: mode,
        stream,
        stream_options: StreamOptions::with_usage(stream),
        ..config.into_chat()
    };
    Ok(json::write(&chat).into_bytes())
}

/// For each message that the request becomes: the index of the client's content that it is made
/// from.
pub(super) fn origins(body: &[u8]) -> Vec<Option<usize>> {
    let request = fields::body::<Request<'_>>(body);
    let messages = request
        .and_then(|request| conversation::messages(request.system_instruction, request.contents));
    messages.into_iter().flatten().map(|message| message.origin).collect()
}

/// The fields of a body that are carried over.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct Request<'a> {
    model: Option<Text<'a>>,
    stream: Option<bool>,
    contents: Option<&'a RawValue>,
    #[serde(alias = "system_instruction")]
    system_instruction: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    #[serde(alias = "tool_config")]
    tool_config: Option<&'a RawValue>,
    #[serde(alias = "generation_config")]
    generation_config: Option<&'a RawValue>,
    #[serde(alias = "cached_content")]
    cached_content: Option<&'a RawValue>,
}
