//! The request as a whole.

use std::borrow::Cow;

use protocol::json::{self, BadRequest, fields};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::message::{self, Message};
use crate::{
    Context,
    chat_body::ChatBody,
    chat_request::FunctionTool,
    from_chat::{ResponseFormat, forced_function},
    schema::Schema,
};

const NOT_IN_OLLAMA: &str =
    "cannot be carried over to the API of the model server, which is an Ollama";

/// The request in Ollama's shape, with a context of `num_ctx` tokens.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context, num_ctx: Option<u64>) -> Result<Vec<u8>, BadRequest> {
    let (chat, more): (ChatBody<'_>, MoreFields<'_>) = (fields::body(body)?, fields::body(body)?);
    chat.refuse(&["0", "1"], NOT_IN_OLLAMA)?;
    let request = ChatRequest {
        model: fields::text(chat.model, "model")?,
        messages: message::all(chat.messages)?,
        tools: tools(&chat)?,
        format: chat.response_format.map(format).transpose()?.flatten(),
        options: options(&chat, &more, num_ctx),
        think: chat.reasoning_effort.map(think).transpose()?,
        keep_alive: more.keep_alive,
        stream: chat.streams()?,
    };
    Ok(json::write(&request).into_bytes())
}

/// Fields that Ollama knows and most other servers do not.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct MoreFields<'a> {
    seed: Option<&'a RawValue>,
    min_p: Option<&'a RawValue>,
    frequency_penalty: Option<&'a RawValue>,
    presence_penalty: Option<&'a RawValue>,
    keep_alive: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: Cow<'a, str>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    options: Options<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a RawValue>,
    /// Ollama streams unless it is told not to.
    stream: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: OfferedFunction<'a>,
}

#[derive(Serialize)]
struct OfferedFunction<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'a, str>>,
    parameters: Schema<'a>,
}

/// The tools that may be called.
fn tools<'a>(chat: &ChatBody<'a>) -> Result<Vec<Tool<'a>>, BadRequest> {
    let offered = FunctionTool::all(
        &chat.tools()?,
        |FunctionTool { name, description, parameters, .. }| Tool {
            kind: "function",
            function: OfferedFunction { name, description, parameters },
        },
    )?;
    let only = match chat.tool_choice.map(RawValue::get) {
        None | Some(r#""auto""# | r#""required""#) => return Ok(offered),
        Some(r#""none""#) => return Ok(Vec::new()),
        Some(_) => chat.tool_choice.map(forced_function).transpose()?,
    };
    Ok(offered.into_iter().filter(|tool| Some(&tool.function.name) == only.as_ref()).collect())
}

#[derive(Serialize)]
#[serde(untagged)]
enum Format<'a> {
    Word(&'static str),
    Schema(&'a RawValue),
}

fn format(raw: &RawValue) -> Result<Option<Format<'_>>, BadRequest> {
    let format = ResponseFormat::read(raw)?;
    match (&*format.kind.0, format.json_schema) {
        ("text", _) => Ok(None),
        ("json_object", _) => Ok(Some(Format::Word("json"))),
        ("json_schema", Some(schema)) => Ok(Some(Format::Schema(schema.schema()?))),
        ("json_schema", None) => {
            let path = "response_format.json_schema";
            Err(BadRequest::new(path, format!("`{path}` is missing")))
        }
        _ => {
            let message = format!("`response_format` of this type {NOT_IN_OLLAMA}");
            Err(BadRequest::new("response_format", message))
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Think {
    Whether(bool),
    Effort(&'static str),
}

fn think(effort: &RawValue) -> Result<Think, BadRequest> {
    let fields::Text(effort) = fields::value(effort, "reasoning_effort")?;
    Ok(match &*effort {
        "none" => Think::Whether(false),
        "minimal" | "low" => Think::Effort("low"),
        "medium" => Think::Effort("medium"),
        "high" | "xhigh" => Think::Effort("high"),
        other => {
            let other = json::clip(other, 64);
            let message =
                format!("`reasoning_effort` is `{other}`; it must be none, low, medium or high");
            return Err(BadRequest::new("reasoning_effort", message));
        }
    })
}

/// `options`; their values are the client's own.
#[derive(Serialize)]
struct Options<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    num_ctx: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<Stops<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<&'a RawValue>,
}

fn options<'a>(chat: &ChatBody<'a>, more: &MoreFields<'a>, num_ctx: Option<u64>) -> Options<'a> {
    Options {
        num_ctx,
        num_predict: chat.max_tokens().map(|(raw, _)| raw),
        temperature: chat.temperature,
        top_p: chat.top_p,
        top_k: chat.top_k,
        min_p: more.min_p,
        seed: more.seed,
        stop: chat.stop.map(Stops::of),
        frequency_penalty: more.frequency_penalty,
        presence_penalty: more.presence_penalty,
    }
}

/// Ollama takes a list of stop sequences only.
#[derive(Serialize)]
#[serde(untagged)]
enum Stops<'a> {
    List(&'a RawValue),
    One([&'a RawValue; 1]),
}

impl<'a> Stops<'a> {
    fn of(raw: &'a RawValue) -> Self {
        if raw.get().starts_with('[') { Self::List(raw) } else { Self::One([raw]) }
    }
}
