//! The messages. In Ollama's API, calls of tools need no ids, and results name their tool. So each result
//! is assigned to a call here.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::{Content, Message, Role, ToolCall},
    ollama::pictures,
    order::in_order,
};

/// The messages of a request, in the order that providers demand.
///
/// # Errors
/// [`BadRequest`] for what cannot be read.
pub(super) fn messages(raw: Option<&RawValue>) -> Result<Vec<Message<'_>>, BadRequest> {
    let missing = || BadRequest::new("messages", "`messages` must hold at least one message");
    let given: Vec<&RawValue> = fields::value(raw.ok_or_else(missing)?, "messages")?;
    if given.is_empty() {
        return Err(missing());
    }
    let mut calls = OpenCalls::default();
    let read = given.iter().enumerate().map(|(at, raw)| message(raw, at, &mut calls));
    Ok(in_order(read.collect::<Result<_, _>>()?))
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Given<'a> {
    role: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
    thinking: Option<Text<'a>>,
    images: Option<Vec<&'a RawValue>>,
    tool_calls: Option<Vec<&'a RawValue>>,
    tool_name: Option<Text<'a>>,
    /// The older name of `tool_name`.
    name: Option<Text<'a>>,
    tool_call_id: Option<Text<'a>>,
}

fn message<'a>(
    raw: &'a RawValue,
    at: usize,
    calls: &mut OpenCalls<'a>,
) -> Result<Message<'a>, BadRequest> {
    let path = format!("messages[{at}]");
    let given: Given<'a> = fields::value(raw, &path)?;
    let role = fields::text(given.role, format!("{path}.role"))?;
    let content = given.content(&path)?;
    let message = match &*role {
        "system" => Message::new(Role::System, content),
        "user" => Message::new(Role::User, content),
        "assistant" => {
            let made = calls.made(&given.tool_calls.unwrap_or_default(), &path)?;
            assistant(content, made, given.thinking.map(|Text(text)| text))
        }
        "tool" => {
            let name = given.tool_name.or(given.name).map(|Text(name)| name);
            let id = calls.answered(given.tool_call_id.map(|Text(id)| id), name.as_deref());
            result(id, content)
        }
        other => return Err(unknown_role(other, &path)),
    };
    Ok(Message { origin: Some(at), ..message })
}

impl<'a> Given<'a> {
    fn content(&self, path: &str) -> Result<Content<'a>, BadRequest> {
        let text = self.content.map(|raw| fields::text(Some(raw), format!("{path}.content")));
        let pictures = self.images.as_deref().unwrap_or_default();
        let text = text.transpose()?.unwrap_or_default();
        pictures::content(text, pictures, &format!("{path}.images"))
    }
}

fn assistant<'a>(
    content: Content<'a>,
    tool_calls: Vec<ToolCall<'a>>,
    thinking: Option<Cow<'a, str>>,
) -> Message<'a> {
    let reasoning_content = thinking.filter(|text| !text.is_empty());
    let is_empty = matches!(&content, Content::Text(text) if text.is_empty());
    let content = Some(content).filter(|_| !is_empty || tool_calls.is_empty());
    Message { content, tool_calls, reasoning_content, ..Message::empty(Role::Assistant) }
}

fn result<'a>(id: Cow<'a, str>, content: Content<'a>) -> Message<'a> {
    let message = Message::tool(id, Cow::Borrowed(""));
    Message { content: Some(content), ..message }
}

fn unknown_role(role: &str, path: &str) -> BadRequest {
    let role = json::clip(role, 64);
    let words = format!("`{path}.role` is `{role}`; it must be system, user, assistant or tool");
    BadRequest::new(format!("{path}.role"), words)
}

/// How many calls came so far, and those that have no result yet.
#[derive(Default)]
struct OpenCalls<'a> {
    made: usize,
    /// The id and the tool of each call without a result.
    open: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct GivenCall<'a> {
    id: Option<Text<'a>>,
    function: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct GivenFunction<'a> {
    name: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
}

impl<'a> OpenCalls<'a> {
    fn made(
        &mut self,
        given: &[&'a RawValue],
        path: &str,
    ) -> Result<Vec<ToolCall<'a>>, BadRequest> {
        let calls = given.iter().enumerate();
        calls.map(|(at, raw)| self.call(raw, &format!("{path}.tool_calls[{at}]"))).collect()
    }

    fn call(&mut self, raw: &'a RawValue, path: &str) -> Result<ToolCall<'a>, BadRequest> {
        let call: GivenCall<'a> = fields::value(raw, path)?;
        let path = format!("{path}.function");
        let function = fields::object(call.function, &path)?;
        let GivenFunction { name, arguments } = fields::value(function, &path)?;
        let name = fields::text(name, format!("{path}.name"))?;
        let arguments = self::arguments(arguments, &format!("{path}.arguments"))?;
        let given = call.id.map(|Text(id)| id).filter(|id| !id.is_empty());
        let id = given.unwrap_or_else(|| Cow::Owned(format!("call_{}", self.made)));
        self.made += 1;
        self.open.push((id.clone(), name.clone()));
        Ok(ToolCall::new(id, name, arguments))
    }

    /// The id of the call that a result belongs to: the call that it names, or else the first open call of its
    /// tool, or else the first open call. If no call is open, `in_order` will make the result the user's words,
    /// whatever its id.
    fn answered(&mut self, id: Option<Cow<'a, str>>, name: Option<&str>) -> Cow<'a, str> {
        let by_id = id.as_ref().and_then(|id| self.open.iter().position(|(open, _)| open == id));
        let by_name = || self.open.iter().position(|(_, tool)| Some(&**tool) == name);
        let place = by_id.or_else(by_name).unwrap_or(0);
        if place < self.open.len() {
            return self.open.remove(place).0;
        }
        id.unwrap_or_default()
    }
}

/// Arguments as text. Some clients send them as text already.
fn arguments<'a>(raw: Option<&'a RawValue>, path: &str) -> Result<Cow<'a, str>, BadRequest> {
    match raw {
        None => Ok(Cow::Borrowed("{}")),
        Some(raw) if raw.get().starts_with('"') => fields::text(Some(raw), path),
        Some(raw) => Ok(Cow::Borrowed(fields::object(Some(raw), path)?.get())),
    }
}
