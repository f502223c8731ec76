//! The messages, and the system prompt that is made of some of them.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{Text, TextOrList},
};
use serde_json::value::RawValue;

use crate::{
    chat_request::join,
    from_chat::{Call, Message, Part},
    ids, media,
    message_request::{Block, Message as Turn, Role, Source},
    thoughts::{SealedThought, Thought},
    turns,
};

/// The separator of two system messages that become one.
const BETWEEN: &str = "\n\n";

/// The system prompt, if any, and the turns.
type Conversation<'a> = (Option<Cow<'a, str>>, Vec<Turn<'a>>);

/// Reads `messages`.
pub(super) fn messages(messages: Option<&RawValue>) -> Result<Conversation<'_>, BadRequest> {
    let mut read = Reading::default();
    for turn in turns::read(messages, ids::plain)? {
        read.add(turn)?;
    }
    if read.turns.is_empty() {
        let message = "`messages` must hold at least one message of a user or an assistant";
        return Err(BadRequest::new("messages", message));
    }
    Ok((read.system, as_demanded(read.turns)))
}

/// The part read so far.
#[derive(Default)]
struct Reading<'a> {
    system: Option<Cow<'a, str>>,
    turns: Vec<Turn<'a>>,
}

impl<'a> Reading<'a> {
    fn add(&mut self, turn: turns::Turn<'a>) -> Result<(), BadRequest> {
        match &*turn.message.role.0 {
            "system" | "developer" => self.system(&turn.message, &turn.path),
            "user" => {
                self.turn(Role::User, blocks(&turn.message, &turn.path)?);
                Ok(())
            }
            "assistant" => self.assistant(turn),
            "tool" => self.result(turn),
            _ => Err(turn.message.wrong_role(&turn.path)),
        }
    }

    fn system(&mut self, message: &Message<'a>, path: &str) -> Result<(), BadRequest> {
        for block in blocks(message, path)? {
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

    fn assistant(&mut self, turn: turns::Turn<'a>) -> Result<(), BadRequest> {
        let turns::Turn { path, mut message, calls, .. } = turn;
        let mut said = blocks(&message, &path)?;
        if said.is_empty() {
            let refusal = message.refusal.take().map(|Text(text)| text);
            said.extend(refusal.and_then(text));
        }
        let thoughts = message.thoughts.into_iter().filter_map(thought);
        let mut blocks: Vec<Block<'a>> = thoughts.chain(said).collect();
        for (at, made) in calls.into_iter().enumerate() {
            blocks.push(call(made, &format!("{path}.tool_calls[{at}]"))?);
        }
        self.turn(Role::Assistant, blocks);
        Ok(())
    }

    fn result(&mut self, turn: turns::Turn<'a>) -> Result<(), BadRequest> {
        let content = blocks(&turn.message, &turn.path)?;
        let tool_use_id = turn.answers.unwrap_or_default();
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

/// The user's words that are put before an assistant that speaks first.
const FIRST: &str = "Begin.";

/// Makes the turns valid for the API: the user must speak first, and a last message of the assistant must not end
/// with white space.
fn as_demanded(mut turns: Vec<Turn<'_>>) -> Vec<Turn<'_>> {
    if let Some(Turn { role: Role::Assistant, content }) = turns.last_mut()
        && let Some(Block::Text { text }) = content.last_mut()
    {
        *text = text.trim_end().to_owned().into();
    }
    if turns.first().is_some_and(|turn| turn.role == Role::Assistant) {
        let content = vec![Block::Text { text: FIRST.into() }];
        turns.insert(0, Turn { role: Role::User, content });
    }
    turns
}

/// A thought in the provider's form; `None` without the provider's signature, because such a thought
/// would be refused.
fn thought(thought: Thought<'_>) -> Option<Block<'_>> {
    match thought {
        Thought { sealed: Some(SealedThought::Anthropic(data)), .. } => {
            Some(Block::RedactedThinking { data })
        }
        Thought { text: thinking, signature: Some(signature), .. } => {
            Some(Block::Thinking { thinking, signature })
        }
        Thought { .. } => None,
    }
}

/// A call that was made.
fn call<'a>(call: Call<'a>, path: &str) -> Result<Block<'a>, BadRequest> {
    let Call { id, name, arguments } = call;
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

/// A block of text; `None` for text without anything but white space, which the API refuses.
fn text(text: Cow<'_, str>) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then_some(Block::Text { text })
}

/// The content of a message.
fn blocks<'a>(message: &Message<'a>, path: &str) -> Result<Vec<Block<'a>>, BadRequest> {
    let path = format!("{path}.content");
    let parts = match message.content.map(|raw| TextOrList::read(raw, &path)).transpose()? {
        None => return Ok(Vec::new()),
        Some(TextOrList::Text(text)) => {
            return Ok(self::text(text).into_iter().collect());
        }
        Some(TextOrList::List(parts)) => parts,
    };
    let read = parts.iter().enumerate().map(|(at, raw)| part(raw, &format!("{path}[{at}]")));
    read.filter_map(Result::transpose).collect()
}

fn part<'a>(raw: &'a RawValue, path: &str) -> Result<Option<Block<'a>>, BadRequest> {
    Ok(match Part::read(raw, path)? {
        Part::Text(said) => text(said),
        Part::Image { url, .. } => {
            Some(Block::Image { source: source(url, &format!("{path}.image_url.url"))? })
        }
        Part::File { data, .. } => Some(document(data, &format!("{path}.file.file_data"))?),
        Part::Thought => None,
    })
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
    let media_type = media::of_picture(media_type, data).into_owned().into();
    Ok(Source::Base64 { media_type, data: data.to_owned().into() })
}
