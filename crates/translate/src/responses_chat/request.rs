//! The request, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    input::messages,
    tools::{Tools, chat_name, is_hosted},
};
use crate::{
    Context,
    chat_request::{ChatRequest, JsonSchema, ResponseFormat, StreamOptions, ToolChoice},
    ids,
};

/// Makes a Chat Completions request from a Responses request. The [module](super) says what becomes
/// of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: Request<'_> = fields::body(body)?;
    request.refuse_state()?;
    Ok(json::write(&request.into_chat()?).into_bytes())
}

/// For each message that the request becomes: the index of the item that it is made from.
pub(super) fn origins(body: &[u8]) -> Vec<Option<usize>> {
    let chat = fields::body::<Request<'_>>(body).and_then(Request::into_chat);
    chat.into_iter().flat_map(|chat| chat.messages).map(|message| message.origin).collect()
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    input: Option<&'a RawValue>,
    instructions: Option<Text<'a>>,
    tools: Option<Vec<&'a RawValue>>,
    tool_choice: Option<&'a RawValue>,
    parallel_tool_calls: Option<bool>,
    text: Option<TextOptions<'a>>,
    reasoning: Option<Reasoning<'a>>,
    max_output_tokens: Option<u64>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    user: Option<Text<'a>>,
    stream: Option<bool>,
    previous_response_id: Option<&'a RawValue>,
    conversation: Option<&'a RawValue>,
    background: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
    moderation: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct TextOptions<'a> {
    #[serde(borrow)]
    format: Option<Format<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Format<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    name: Option<Text<'a>>,
    description: Option<Text<'a>>,
    schema: Option<&'a RawValue>,
    strict: Option<bool>,
}

#[derive(Deserialize)]
struct Reasoning<'a> {
    #[serde(borrow)]
    effort: Option<Text<'a>>,
}

/// The tool that must be called, or the tools that may be.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Choice<'a> {
    #[serde(rename = "type")]
    kind: Text<'a>,
    name: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    mode: Option<Text<'a>>,
    tools: Option<Vec<Choice<'a>>>,
}

impl<'a> Request<'a> {
    /// Refuses references to stored state: nothing is stored here, so a request must be complete.
    fn refuse_state(&self) -> Result<(), BadRequest> {
        let stored = [
            ("previous_response_id", self.previous_response_id),
            ("conversation", self.conversation),
            ("background", self.background),
            ("prompt", self.prompt),
        ];
        fields::refuse(
            &stored,
            "needs stored responses or prompts, which this server does not keep; send the whole \
             conversation in `input`",
        )?;
        fields::refuse(&[("moderation", self.moderation)], "is not available here; leave it out")
    }

    fn into_chat(self) -> Result<ChatRequest<'a>, BadRequest> {
        let mut tools = Tools::default();
        tools.add(self.tools.as_deref().unwrap_or_default(), "tools")?;
        let instructions = self.instructions.map(|Text(text)| text);
        let messages = messages(instructions, self.input, &mut tools)?;
        let tool_choice = self.tool_choice.map(|raw| tool_choice(raw, &mut tools)).transpose()?;
        let has_tools = !tools.offered.is_empty();
        let stream = self.stream.unwrap_or(false);
        Ok(ChatRequest {
            model: self.model.0,
            messages,
            tools: tools.offered,
            tool_choice: tool_choice.filter(|_| has_tools),
            parallel_tool_calls: self.parallel_tool_calls.filter(|_| has_tools),
            response_format: response_format(self.text)?,
            reasoning_effort: self.reasoning.and_then(effort),
            max_tokens: self.max_output_tokens,
            temperature: self.temperature,
            top_p: self.top_p,
            user: self.user.map(|Text(user)| ids::at_most(user, ids::OPENAI_ID)),
            stream,
            stream_options: StreamOptions::with_usage(stream),
            ..ChatRequest::default()
        })
    }
}

/// The effort, in words that every server with this parameter knows.
fn effort(reasoning: Reasoning<'_>) -> Option<Cow<'_, str>> {
    let Text(effort) = reasoning.effort?;
    Some(match effort.as_ref() {
        "minimal" => "low".into(),
        "xhigh" | "max" => "high".into(),
        _ => effort,
    })
}

fn response_format(
    text: Option<TextOptions<'_>>,
) -> Result<Option<ResponseFormat<'_>>, BadRequest> {
    let Some(format) = text.and_then(|text| text.format) else { return Ok(None) };
    match format.kind.0.as_ref() {
        "text" => Ok(None),
        "json_object" => Ok(Some(ResponseFormat::JsonObject)),
        "json_schema" => json_schema(format).map(Some),
        kind => {
            let kind = json::clip(kind, 64);
            let message = format!(
                "`text.format` is of type `{kind}`; it must be text, json_object or json_schema"
            );
            Err(BadRequest::new("text.format.type", message))
        }
    }
}

fn json_schema(format: Format<'_>) -> Result<ResponseFormat<'_>, BadRequest> {
    let json_schema = JsonSchema {
        name: format.name.map_or("answer".into(), |Text(name)| name),
        description: format.description.map(|Text(text)| text),
        schema: Cow::Borrowed(fields::object(format.schema, "text.format.schema")?),
        strict: format.strict,
    };
    Ok(ResponseFormat::JsonSchema { json_schema })
}

fn tool_choice<'a>(raw: &'a RawValue, tools: &mut Tools<'a>) -> Result<ToolChoice<'a>, BadRequest> {
    if raw.get().starts_with('"') {
        return mode(&fields::text(Some(raw), "tool_choice")?, tools);
    }
    let choice: Choice<'a> = fields::value(raw, "tool_choice")?;
    match choice.kind.0.as_ref() {
        "function" | "custom" => Ok(ToolChoice::function(choice.offered(tools)?.into())),
        "allowed_tools" => choice.allow(tools),
        kind => Err(not_here(kind)),
    }
}

/// `auto`, `none` or `required`. `required` is refused if no tool is offered.
fn mode<'a>(word: &str, tools: &Tools<'a>) -> Result<ToolChoice<'a>, BadRequest> {
    match word {
        "auto" => Ok(ToolChoice::Mode("auto")),
        "none" => Ok(ToolChoice::Mode("none")),
        "required" if !tools.offered.is_empty() => Ok(ToolChoice::Mode("required")),
        "required" => {
            let message = "`tool_choice` demands a tool, and none is offered that the model server \
                           could call";
            Err(BadRequest::new("tool_choice", message))
        }
        _ => {
            let message = format!(
                "`tool_choice` is `{}`; it must be auto, none, required or an object",
                json::clip(word, 64)
            );
            Err(BadRequest::new("tool_choice", message))
        }
    }
}

fn not_here(kind: &str) -> BadRequest {
    let kind = json::clip(kind, 64);
    let message =
        format!("`tool_choice` asks for a tool of type `{kind}`, which is not available here");
    BadRequest::new("tool_choice", message)
}

impl Choice<'_> {
    /// The name in Chat Completions of the tool that is named; an error if it is not offered.
    fn offered(&self, tools: &Tools<'_>) -> Result<String, BadRequest> {
        let name = self.name.as_ref().map_or("", |Text(name)| name);
        let space = self.namespace.as_ref().map(|Text(space)| space.as_ref());
        let name = chat_name(space, name).into_owned();
        if tools.names.contains(&name) {
            return Ok(name);
        }
        let name = json::clip(&name, 64);
        let message = format!("`tool_choice` names `{name}`, which is not among `tools`");
        Err(BadRequest::new("tool_choice", message))
    }

    /// Keeps only the allowed tools. Hosted ones were left out before.
    fn allow<'a>(&self, tools: &mut Tools<'a>) -> Result<ToolChoice<'a>, BadRequest> {
        let allowed = self.tools.iter().flatten().filter(|choice| !is_hosted(&choice.kind.0));
        let names: Vec<_> =
            allowed.map(|choice| choice.offered(tools)).collect::<Result<_, _>>()?;
        tools.keep(&names);
        mode(self.mode.as_ref().map_or("auto", |Text(mode)| mode), tools)
    }
}
