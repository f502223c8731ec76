//! The request as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{conversation, tools};
use crate::{
    context::Context,
    from_chat::{ResponseFormat, refuse_more_than_text},
    message_request::{Format, MessageRequest, Metadata, OutputConfig},
};

/// How many tokens an answer may have when the client does not say.
pub const DEFAULT_TOKENS: u64 = 4096;

/// The request in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let asked: Request<'_> = fields::body(body)?;
    asked.refuse()?;
    let (system, messages) = conversation::messages(asked.messages)?;
    let tools = tools::tools(asked.tools.as_deref().unwrap_or_default())?;
    let request = MessageRequest {
        model: fields::text(asked.model, "model")?,
        max_tokens: asked.max_tokens()?,
        system,
        messages,
        tool_choice: tools::choice(asked.tool_choice, asked.parallel_tool_calls, &tools)?,
        tools,
        output_config: asked.output_config()?,
        temperature: asked.temperature()?,
        top_p: asked.top_p,
        top_k: asked.top_k,
        stop_sequences: asked.stop_sequences()?,
        metadata: asked.user.map(|Text(user_id)| Metadata { user_id }),
        stream: asked.stream.unwrap_or(false),
    };
    Ok(json::write(&request).into_bytes())
}

/// The body of `POST /v1/chat/completions`, as far as it matters.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    max_completion_tokens: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_k: Option<&'a RawValue>,
    stop: Option<&'a RawValue>,
    stream: Option<bool>,
    user: Option<Text<'a>>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<&'a RawValue>,
    n: Option<&'a RawValue>,
    modalities: Option<&'a RawValue>,
    logprobs: Option<&'a RawValue>,
    top_logprobs: Option<&'a RawValue>,
    logit_bias: Option<&'a RawValue>,
    functions: Option<&'a RawValue>,
    function_call: Option<&'a RawValue>,
    audio: Option<&'a RawValue>,
    web_search_options: Option<&'a RawValue>,
}

/// Why a parameter is refused.
const NOT_IN_MESSAGES: &str = "cannot be carried over to the Messages API of the model server";

impl<'a> Request<'a> {
    fn refuse(&self) -> Result<(), BadRequest> {
        let more_than_one = self.n.filter(|n| !matches!(n.get(), "0" | "1"));
        let no_logprobs = |raw: &&RawValue| raw.get() != "0";
        let parameters = [
            ("n", more_than_one),
            ("logprobs", self.logprobs),
            ("top_logprobs", self.top_logprobs.filter(no_logprobs)),
            ("logit_bias", self.logit_bias),
            ("functions", self.functions),
            ("function_call", self.function_call),
            ("audio", self.audio),
        ];
        fields::refuse(&parameters, NOT_IN_MESSAGES)?;
        refuse_more_than_text(self.modalities, self.web_search_options, NOT_IN_MESSAGES)
    }

    fn max_tokens(&self) -> Result<u64, BadRequest> {
        let newer = self.max_completion_tokens.map(|raw| (raw, "max_completion_tokens"));
        let Some((raw, name)) = newer.or(self.max_tokens.map(|raw| (raw, "max_tokens"))) else {
            return Ok(DEFAULT_TOKENS);
        };
        fields::value(raw, name)
    }

    fn temperature(&self) -> Result<Option<f64>, BadRequest> {
        let Some(raw) = self.temperature else { return Ok(None) };
        let asked: f64 = fields::value(raw, "temperature")?;
        Ok(Some(asked.min(1.0)))
    }

    fn stop_sequences(&self) -> Result<Vec<Cow<'a, str>>, BadRequest> {
        match self.stop.map(|raw| TextOrList::read(raw, "stop")).transpose()? {
            None => Ok(Vec::new()),
            Some(TextOrList::Text(stop)) => Ok(vec![stop]),
            Some(TextOrList::List(stops)) => {
                let read = stops.iter().enumerate();
                read.map(|(at, raw)| fields::text(Some(raw), format!("stop[{at}]"))).collect()
            }
        }
    }

    fn output_config(&self) -> Result<Option<OutputConfig<'a>>, BadRequest> {
        let Some(raw) = self.response_format else { return Ok(None) };
        let asked = ResponseFormat::read(raw)?;
        match (&*asked.kind.0, asked.json_schema) {
            ("text", _) => Ok(None),
            ("json_schema", Some(asked)) => {
                let format = Format { kind: "json_schema", schema: asked.schema()? };
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
}
