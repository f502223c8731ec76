//! The messages, and the system prompt among them.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde_json::value::RawValue;

use crate::{
    chat_request::join,
    from_chat::{Call, Message, Part},
    message_request::{Block, Message as Turn, Role, Source},
};

/// The separator of two system messages that become one.
const BETWEEN: &str = "\n\n";

/// The system prompt, if any, and the turns.
type Conversation<'a> = (Option<Cow<'a, str>>, Vec<Turn<'a>>);

/// Reads `messages`.
pub(super) fn messages(asked: Option<&RawValue>) -> Result<Conversation<'_>, BadRequest> {
    let missing = || BadRequest::new("messages", "`messages` is missing");
    let asked: Vec<&RawValue> = fields::value(asked.ok_or_else(missing)?, "messages")?;
    let mut read = Reading::default();
    for (at, raw) in asked.iter().enumerate() {
        read.add(raw, &format!("messages[{at}]"))?;
    }
    if read.turns.is_empty() {
        let message = "`messages` must hold at least one message of a user or an assistant";
        return Err(BadRequest::new("messages", message));
    }
    Ok((read.system, read.turns))
}

/// The part read so far.
#[derive(Default)]
struct Reading<'a> {
    system: Option<Cow<'a, str>>,
    turns: Vec<Turn<'a>>,
}

impl<'a> Reading<'a> {
    fn add(&mut self, raw: &'a RawValue, path: &str) -> Result<(), BadRequest> {
        let asked = Message::read(raw, path)?;
        match &*asked.role.0 {
            "system" | "developer" => self.system(&asked, path),
            "user" => {
                self.turn(Role::User, blocks(&asked, path)?);
                Ok(())
            }
            "assistant" => self.assistant(&asked, path),
            "tool" => self.result(&asked, path),
            _ => Err(asked.wrong_role(path)),
        }
    }

    fn system(&mut self, asked: &Message<'a>, path: &str) -> Result<(), BadRequest> {
        for block in blocks(asked, path)? {
            let Block::Text { text } = block else {
                let path = format!("{path}.content");
                return Err(BadRequest::new(&*path, format!("`{path}` must be text")));
            };
            self.system = Some(match self.system.take() {
                Some(before) => join(before, BETWEEN, &text),
                None => text,
            });
        }
        Ok(())
    }

    fn assistant(&mut self, asked: &Message<'a>, path: &str) -> Result<(), BadRequest> {
        let mut blocks = blocks(asked, path)?;
        if blocks.is_empty() {
            let refusal = asked.refusal.as_ref().map(|Text(text)| text.clone());
            blocks.extend(refusal.map(|text| Block::Text { text }));
        }
        for (at, raw) in asked.tool_calls.iter().flatten().enumerate() {
            blocks.push(call(raw, &format!("{path}.tool_calls[{at}]"))?);
        }
        self.turn(Role::Assistant, blocks);
        Ok(())
    }

    fn result(&mut self, asked: &Message<'a>, path: &str) -> Result<(), BadRequest> {
        let tool_use_id = fields::text(asked.tool_call_id, format!("{path}.tool_call_id"))?;
        let content = blocks(asked, path)?;
        self.turn(Role::User, vec![Block::ToolResult { tool_use_id, content }]);
        Ok(())
    }

    /// Adds to the last turn if it has the same role. An empty turn is dropped.
    fn turn(&mut self, role: Role, mut blocks: Vec<Block<'a>>) {
        match self.turns.last_mut().filter(|last| last.role == role) {
            Some(last) => last.content.append(&mut blocks),
            None if blocks.is_empty() => {}
            None => self.turns.push(Turn { role, content: blocks }),
        }
    }
}

/// A call that was made.
fn call<'a>(raw: &'a RawValue, path: &str) -> Result<Block<'a>, BadRequest> {
    let Call { id, name, arguments } = Call::read(raw, path)?;
    Ok(Block::ToolUse { id, name, input: input(&arguments, &format!("{path}.function"))? })
}

fn input(arguments: &str, path: &str) -> Result<Box<RawValue>, BadRequest> {
    let object = match arguments.trim() {
        text if text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok() => {
            text.to_owned()
        }
        text => format!(r#"{{"arguments":{}}}"#, json::write(&text)),
    };
    let wrong = |error| BadRequest::new(path, format!("`{path}.arguments`: {error}"));
    RawValue::from_string(object).map_err(wrong)
}

/// The content of a message; Messages has no empty text.
fn blocks<'a>(asked: &Message<'a>, path: &str) -> Result<Vec<Block<'a>>, BadRequest> {
    let path = format!("{path}.content");
    let parts = match asked.content.map(|raw| TextOrList::read(raw, &path)).transpose()? {
        None => return Ok(Vec::new()),
        Some(TextOrList::Text(text)) => {
            let text = Some(text).filter(|text| !text.is_empty());
            return Ok(text.map(|text| Block::Text { text }).into_iter().collect());
        }
        Some(TextOrList::List(parts)) => parts,
    };
    let read = parts.iter().enumerate().map(|(at, raw)| part(raw, &format!("{path}[{at}]")));
    let mut blocks = read.collect::<Result<Vec<_>, _>>()?;
    blocks.retain(|block| !matches!(block, Block::Text { text } if text.is_empty()));
    Ok(blocks)
}

fn part<'a>(raw: &'a RawValue, path: &str) -> Result<Block<'a>, BadRequest> {
    match Part::read(raw, path)? {
        Part::Text(text) => Ok(Block::Text { text }),
        Part::Image { url, .. } => {
            Ok(Block::Image { source: source(url, &format!("{path}.image_url.url"))? })
        }
        Part::File { data, .. } => document(data, &format!("{path}.file.file_data")),
    }
}

fn document<'a>(data: Cow<'a, str>, path: &str) -> Result<Block<'a>, BadRequest> {
    let source = source(data, path)?;
    match &source {
        Source::Base64 { media_type, .. } if media_type == "application/pdf" => {
            Ok(Block::Document { source })
        }
        _ => Err(BadRequest::new(path, format!("`{path}` must be a PDF as a data URL"))),
    }
}

/// An address, or the content of a `data:` URL.
fn source<'a>(url: Cow<'a, str>, path: &str) -> Result<Source<'a>, BadRequest> {
    let Some(inline) = url.strip_prefix("data:") else { return Ok(Source::Url { url }) };
    let Some((media_type, data)) = inline.split_once(";base64,") else {
        let message = format!("`{path}` is a data URL that is not in base64");
        return Err(BadRequest::new(path, message));
    };
    // A type may have parameters, which Messages does not know.
    let media_type = media_type.split(';').next().unwrap_or_default().to_owned().into();
    Ok(Source::Base64 { media_type, data: data.to_owned().into() })
}
