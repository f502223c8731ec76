//! The messages of a conversation.

use std::{borrow::Cow, collections::HashMap};

use protocol::json::{
    self, BadRequest,
    fields::{Text, TextOrList},
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::join,
    from_chat::{Call, Part},
    thoughts::Thought,
    turns::{self, Turn},
};

#[derive(Serialize)]
pub(super) struct Message<'a> {
    role: Cow<'a, str>,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    /// The tool whose result this is, and the id of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: Cow<'a, str>,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: Cow<'a, str>,
    arguments: Box<RawValue>,
}

/// Reads `messages`.
pub(super) fn all(messages: Option<&RawValue>) -> Result<Vec<Message<'_>>, BadRequest> {
    let turns = turns::read(messages, |id| id)?;
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let names: HashMap<Cow<'_, str>, Cow<'_, str>> =
        calls.map(|call| (call.id.clone(), call.name.clone())).collect();
    turns.into_iter().map(|turn| message(turn, &names)).collect()
}

fn message<'a>(
    turn: Turn<'a>,
    names: &HashMap<Cow<'a, str>, Cow<'a, str>>,
) -> Result<Message<'a>, BadRequest> {
    let Turn { path, message, calls, answers } = turn;
    let role = match &*message.role.0 {
        "developer" => "system".into(),
        "system" | "user" | "assistant" | "tool" => message.role.0.clone(),
        _ => return Err(message.wrong_role(&path)),
    };
    let (mut content, images) = said(message.content, &format!("{path}.content"))?;
    if let Some(Text(refusal)) = message.refusal.filter(|_| content.is_empty()) {
        content = refusal;
    }
    let thoughts: Vec<_> = message.thoughts.iter().map(|Thought { text, .. }| &**text).collect();
    Ok(Message {
        role,
        content,
        images,
        thinking: thoughts.concat(),
        tool_calls: calls.into_iter().map(ToolCall::of).collect(),
        tool_name: answers.as_ref().and_then(|id| names.get(id)).cloned(),
        tool_call_id: answers,
    })
}

/// The text of a message, and its pictures.
fn said<'a>(
    raw: Option<&'a RawValue>,
    path: &str,
) -> Result<(Cow<'a, str>, Vec<String>), BadRequest> {
    let parts = match raw.map(|raw| TextOrList::read(raw, path)).transpose()? {
        None => return Ok(("".into(), Vec::new())),
        Some(TextOrList::Text(text)) => return Ok((text, Vec::new())),
        Some(TextOrList::List(parts)) => parts,
    };
    let (mut said, mut images): (Option<Cow<'a, str>>, _) = (None, Vec::new());
    for (at, raw) in parts.iter().enumerate() {
        let path = format!("{path}[{at}]");
        match Part::read(raw, &path)? {
            Part::Text(text) => {
                said = Some(said.map_or(text.clone(), |all| join(all, "\n", &text)));
            }
            Part::Image { url, .. } => {
                images.push(picture(&url, &format!("{path}.image_url.url"))?);
            }
            Part::File { .. } => {
                let message = format!("`{path}` is a file; Ollama takes text and pictures");
                return Err(BadRequest::new(path, message));
            }
            Part::Thought => {}
        }
    }
    Ok((said.unwrap_or_default(), images))
}

/// A picture as base64. Some clients send bare base64 instead of a `data:` URL.
fn picture(url: &str, path: &str) -> Result<String, BadRequest> {
    let data = match url.strip_prefix("data:") {
        Some(inline) => inline.split_once(";base64,").map(|(_, data)| data),
        None => Some(url).filter(|url| !url.contains("://")),
    };
    let refused = || {
        let message = format!("`{path}` must be a data URL in base64: Ollama fetches no pictures");
        BadRequest::new(path, message)
    };
    data.map(str::to_owned).ok_or_else(refused)
}

impl<'a> ToolCall<'a> {
    fn of(call: Call<'a>) -> Self {
        let Call { id, name, arguments } = call;
        Self { id, function: CalledFunction { name, arguments: object(&arguments) } }
    }
}

/// Arguments as an object. Any other value becomes the one argument of an object.
fn object(arguments: &str) -> Box<RawValue> {
    let text = arguments.trim();
    let is_object = text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok();
    let object = match is_object {
        true => text.to_owned(),
        false => format!(r#"{{"arguments":{}}}"#, json::write(&text)),
    };
    // Cannot fail: `object` is valid JSON here.
    RawValue::from_string(object).unwrap_or_default()
}
