//! The system prompt and the messages.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::{self, Block};
use crate::{
    chat_request::{Content, Message, Part, Role, ToolCall, join},
    instruct::instruct,
    order::in_order,
};

/// The prefix of a system block of Claude Code that is only for Anthropic's billing. It changes
/// with each request, and would invalidate the provider's prompt cache each time.
const BILLING: &str = "x-anthropic-billing-header:";

/// The messages of a whole request.
pub(super) fn messages<'a>(
    system: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
) -> Result<Vec<Message<'a>>, BadRequest> {
    let missing = || BadRequest::new("messages", "`messages` is missing");
    let list: Vec<&RawValue> = fields::value(messages.ok_or_else(missing)?, "messages")?;
    if list.is_empty() {
        return Err(BadRequest::new("messages", "`messages` must hold at least one message"));
    }
    let mut all = Vec::with_capacity(list.len() + 1);
    if let Some(raw) = system {
        add_system(raw, "system", &mut all)?;
    }
    for (at, raw) in list.iter().enumerate() {
        let before = all.len();
        add(raw, &format!("messages[{at}]"), &mut all)?;
        all.iter_mut().skip(before).for_each(|message| message.origin = Some(at));
    }
    all.retain(Message::says_something);
    Ok(in_order(all))
}

fn add_system<'a>(
    raw: &'a RawValue,
    path: &str,
    all: &mut Vec<Message<'a>>,
) -> Result<(), BadRequest> {
    let mut parts = content(raw, path, |block, path| block.into_parts(path))?;
    parts.retain(|part| !matches!(part, Part::Text { text } if text.starts_with(BILLING)));
    if !parts.is_empty() {
        instruct(all, Content::of_parts(parts));
    }
    Ok(())
}

fn add<'a>(raw: &'a RawValue, path: &str, all: &mut Vec<Message<'a>>) -> Result<(), BadRequest> {
    let message: AskedMessage<'a> = fields::value(raw, path)?;
    let content_path = format!("{path}.content");
    let missing = || BadRequest::new(&*content_path, format!("`{content_path}` is missing"));
    let raw = message.content.ok_or_else(missing)?;
    match &*message.role.0 {
        "user" => user(raw, &content_path, all),
        "assistant" => assistant(raw, &content_path, all),
        "system" => add_system(raw, &content_path, all),
        role => {
            let role = json::clip(role, 64);
            let message = format!("`{path}.role` is `{role}`; it must be user or assistant");
            Err(BadRequest::new(format!("{path}.role"), message))
        }
    }
}

/// Adds the results of tools, each as a message, then the user's message. Pictures of results go
/// into the user's message.
fn user<'a>(raw: &'a RawValue, path: &str, all: &mut Vec<Message<'a>>) -> Result<(), BadRequest> {
    let mut results = Vec::new();
    let mut said = content(raw, path, |block, path| {
        if !block.is("tool_result") {
            return block.into_parts(path);
        }
        let (message, pictures) = block.into_result(path)?;
        results.push(message);
        Ok(pictures)
    })?;
    said.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
    let only_results = !results.is_empty() && said.is_empty();
    all.append(&mut results);
    if !only_results {
        all.push(Message::new(Role::User, Content::of_parts(said)));
    }
    Ok(())
}

/// Adds the assistant's thoughts, text and calls. Thoughts alone are joined to the assistant's next
/// message, if that follows. Traces of hosted tools alone make no message.
fn assistant<'a>(
    raw: &'a RawValue,
    path: &str,
    all: &mut Vec<Message<'a>>,
) -> Result<(), BadRequest> {
    let mut message = match all.pop_if(|last| !last.says_something()) {
        Some(thoughts) => thoughts,
        None => Message::empty(Role::Assistant),
    };
    let mut tool_calls = Vec::new();
    let mut unsaid = false;
    let said = content(raw, path, |block, path| {
        unsaid |= block.is_thought() || block.is_trace();
        if let Some(thought) = block.thought(path)? {
            message.think(thought);
        }
        if !block.is("tool_use") {
            return block.into_parts(path);
        }
        tool_calls.push(call(&block, path)?);
        Ok(Vec::new())
    })?;
    let text = said.into_iter().try_fold(None, |all: Option<Cow<'a, str>>, part| match part {
        Part::Text { text } if all.is_none() => Ok(Some(text)),
        Part::Text { text } => Ok(all.map(|all| join(all, "", &text))),
        Part::ImageUrl { .. } | Part::InputAudio { .. } | Part::File { .. } => {
            let message = format!("`{path}` holds an image, which an assistant cannot have sent");
            Err(BadRequest::new(path, message))
        }
    })?;
    let is_empty = tool_calls.is_empty() && !unsaid;
    let text = if is_empty { text.or(Some(Cow::Borrowed(""))) } else { text };
    all.push(Message { content: text.map(Content::Text), tool_calls, ..message });
    Ok(())
}

fn call<'a>(block: &Block<'a>, path: &str) -> Result<ToolCall<'a>, BadRequest> {
    let id = fields::text(block.id, format!("{path}.id"))?;
    let name = fields::text(block.name, format!("{path}.name"))?;
    let arguments = block.input.map_or("{}", RawValue::get);
    if !arguments.starts_with('{') {
        let path = format!("{path}.input");
        return Err(BadRequest::new(&*path, format!("`{path}` must be an object")));
    }
    Ok(ToolCall::new(id, name, Cow::Borrowed(arguments)))
}

/// Reads content, which is a string or blocks, into parts. `read` makes parts of a block.
fn content<'a>(
    raw: &'a RawValue,
    path: &str,
    mut read: impl FnMut(Block<'a>, &str) -> Result<Vec<Part<'a>>, BadRequest>,
) -> Result<Vec<Part<'a>>, BadRequest> {
    let blocks = match TextOrList::read(raw, path)? {
        TextOrList::Text(text) => return Ok(vec![Part::Text { text }]),
        TextOrList::List(blocks) => blocks,
    };
    let mut parts = Vec::with_capacity(blocks.len());
    for (at, raw) in blocks.iter().enumerate() {
        let path = format!("{path}[{at}]");
        parts.append(&mut read(blocks::block(raw, &path)?, &path)?);
    }
    Ok(parts)
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedMessage<'a> {
    role: Text<'a>,
    content: Option<&'a RawValue>,
}
