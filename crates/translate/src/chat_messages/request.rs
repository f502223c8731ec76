//! The request as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde_json::value::RawValue;

use super::{conversation, tools};
use crate::{
    Context,
    chat_body::ChatBody,
    from_chat::ResponseFormat,
    ids,
    message_request::{Format, MessageRequest, Metadata, OutputConfig},
};

/// The token limit of an answer when the client sets none.
pub const DEFAULT_TOKENS: u64 = 4096;

const NOT_IN_MESSAGES: &str = "cannot be carried over to the Messages API of the model server";

/// The request in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let body: ChatBody<'_> = fields::body(body)?;
    body.refuse(&["0", "1"], NOT_IN_MESSAGES)?;
    let (system, messages) = conversation::messages(body.messages)?;
    let offered = tools::tools(&body.tools()?)?;
    let choice = tools::choice(body.tool_choice, body.parallel_tool_calls()?, &offered)?;
    let (tools, tool_choice) = tools::with_called(offered, choice, &messages);
    let max_tokens = body.max_tokens().map(|(raw, name)| fields::value(raw, name)).transpose()?;
    let temperature: Option<f64> = body.optional(body.temperature, "temperature")?;
    let user = body.optional(body.user, "user")?;
    let request = MessageRequest {
        model: fields::text(body.model, "model")?,
        max_tokens: max_tokens.unwrap_or(DEFAULT_TOKENS),
        system,
        messages,
        tool_choice,
        tools,
        output_config: body.response_format.map(output_config).transpose()?.flatten(),
        // Messages accepts 1 at most.
        temperature: temperature.map(|temperature| temperature.min(1.0)),
        top_p: body.top_p,
        top_k: body.top_k,
        stop_sequences: body.stop.map(stop_sequences).transpose()?.unwrap_or_default(),
        metadata: user
            .map(|Text(user)| Metadata { user_id: ids::at_most(user, ids::MESSAGES_USER) }),
        stream: body.streams()?,
    };
    Ok(json::write(&request).into_bytes())
}

fn stop_sequences(raw: &RawValue) -> Result<Vec<Cow<'_, str>>, BadRequest> {
    let mut stops: Vec<Cow<'_, str>> = match TextOrList::read(raw, "stop")? {
        TextOrList::Text(stop) => vec![stop],
        TextOrList::List(stops) => {
            let read = stops.iter().enumerate();
            let read = read.map(|(at, raw)| fields::text(Some(raw), format!("stop[{at}]")));
            read.collect::<Result<_, _>>()?
        }
    };
    // Messages refuses stop sequences of white space only.
    stops.retain(|stop| !stop.trim().is_empty());
    Ok(stops)
}

fn output_config(raw: &RawValue) -> Result<Option<OutputConfig<'_>>, BadRequest> {
    let format = ResponseFormat::read(raw)?;
    match (&*format.kind.0, format.json_schema) {
        ("text", _) => Ok(None),
        ("json_schema", Some(schema)) => {
            let format = Format { kind: "json_schema", schema: schema.schema()? };
            Ok(Some(OutputConfig { format }))
        }
        ("json_schema", None) => {
            let path = "response_format.json_schema";
            Err(BadRequest::new(path, format!("`{path}` is missing")))
        }
        _ => {
            let message = format!(
                "`response_format` of this type {NOT_IN_MESSAGES}; ask for a `json_schema`"
            );
            Err(BadRequest::new("response_format", message))
        }
    }
}
