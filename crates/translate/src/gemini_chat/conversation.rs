//! The system instruction and the contents.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    part::{self, Said},
    results::Calls,
    signature,
};
use crate::{
    chat_request::{Content, Message, Part, Role, ToolCall, join},
    order::in_order,
};

/// The messages of a whole request.
pub(super) fn messages<'a>(
    system: Option<&'a RawValue>,
    contents: Option<&'a RawValue>,
) -> Result<Vec<Message<'a>>, BadRequest> {
    let missing = || BadRequest::new("contents", "`contents` is missing");
    let contents = list(contents.ok_or_else(missing)?, "contents")?;
    if contents.is_empty() {
        let message = "`contents` must hold at least one content";
        return Err(BadRequest::new("contents", message));
    }
    let mut reading = Reading::default();
    if let Some(raw) = system.filter(|raw| raw.get() != "null") {
        reading.system(raw)?;
    }
    for (at, raw) in contents.into_iter().enumerate() {
        let before = reading.messages.len();
        reading.add(raw, at)?;
        let added = reading.messages.iter_mut().skip(before);
        added.for_each(|message| message.origin = Some(at));
    }
    reading.messages.retain(Message::says_something);
    Ok(in_order(reading.messages))
}

/// A list, or its only item: Google's JSON allows both.
pub(super) fn list<'a>(raw: &'a RawValue, path: &str) -> Result<Vec<&'a RawValue>, BadRequest> {
    if raw.get().starts_with('{') { Ok(vec![raw]) } else { fields::value(raw, path) }
}

/// The messages so far, and the calls among them.
#[derive(Default)]
struct Reading<'a> {
    messages: Vec<Message<'a>>,
    calls: Calls<'a>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedContent<'a> {
    role: Option<Text<'a>>,
    parts: Option<&'a RawValue>,
}

impl<'a> Reading<'a> {
    fn system(&mut self, raw: &'a RawValue) -> Result<(), BadRequest> {
        let path = "systemInstruction";
        let mut said = Vec::new();
        // Some clients send a bare text.
        if raw.get().starts_with('"') {
            said.push(Part::Text { text: fields::text(Some(raw), path)? });
        } else {
            let content: AskedContent<'a> = fields::value(raw, path)?;
            for (part, path) in parts(content.parts, path)? {
                said.extend(part::read(part, &path)?.into_part(&path)?);
            }
        }
        let instructions = Content::of_parts(said);
        let is_empty = matches!(&instructions, Content::Text(text) if text.is_empty());
        if !is_empty {
            self.messages.push(Message::new(Role::System, instructions));
        }
        Ok(())
    }

    fn add(&mut self, raw: &'a RawValue, at: usize) -> Result<(), BadRequest> {
        let path = format!("contents[{at}]");
        let content: AskedContent<'a> = fields::value(raw, &path)?;
        let mut said = Vec::new();
        for (raw, path) in parts(content.parts, &path)? {
            said.push((part::read(raw, &path)?, path));
        }
        match content.role.as_ref().map_or("user", |Text(role)| role) {
            "" | "user" | "function" | "tool" => self.user(said),
            "model" | "assistant" => self.model(said, at),
            role => {
                let role = json::clip(role, 64);
                let message = format!("`{path}.role` is `{role}`; it must be user or model");
                Err(BadRequest::new(format!("{path}.role"), message))
            }
        }
    }

    /// Adds the results of tools, each as a message, then the user's message. Pictures of results go into
    /// the user's message.
    fn user(&mut self, said: Vec<(Said<'a>, String)>) -> Result<(), BadRequest> {
        let (mut results, mut words) = (Vec::new(), Vec::new());
        for (said, path) in said {
            match said {
                Said::Result(result) => {
                    let (message, mut pictures) = result.into_message(&mut self.calls, &path)?;
                    results.push(message);
                    words.append(&mut pictures);
                }
                other => words.extend(other.into_part(&path)?),
            }
        }
        words.retain(|part| !matches!(part, Part::Text { text } if text.is_empty()));
        let only_results = !results.is_empty() && words.is_empty();
        self.messages.append(&mut results);
        if !only_results {
            self.messages.push(Message::new(Role::User, Content::of_parts(words)));
        }
        Ok(())
    }

    /// Adds the model's thoughts, text and calls. Thoughts alone are joined to the model's next
    /// message, if that follows.
    fn model(&mut self, said: Vec<(Said<'a>, String)>, at: usize) -> Result<(), BadRequest> {
        let mut message = match self.messages.pop_if(|last| !last.says_something()) {
            Some(thoughts) => thoughts,
            None => Message::empty(Role::Assistant),
        };
        let mut text: Option<Cow<'a, str>> = None;
        for (nth, (said, path)) in said.into_iter().enumerate() {
            match said {
                Said::Thought { text, signature } => {
                    message.think_if_any(text);
                    signature::remember(&mut message, signature.as_deref());
                }
                Said::Text { text: more, signature } => {
                    signature::remember(&mut message, signature.as_deref());
                    text = Some(text.map_or(more.clone(), |before| join(before, "", &more)));
                }
                Said::Call(call) => {
                    signature::remember(&mut message, call.signature.as_deref());
                    let id = self.calls.begin(call.id, &call.name, (at, nth));
                    let extra = call.signature.as_deref().and_then(signature::of_call);
                    let arguments = Cow::Borrowed(call.arguments);
                    let call = ToolCall::new(id, call.name, arguments).with_extra(extra);
                    message.tool_calls.push(call);
                }
                // A result counts as one even if the client put it into the model's content.
                Said::Result(result) => {
                    let (result, _) = result.into_message(&mut self.calls, &path)?;
                    self.messages.push(result);
                }
                Said::Trace => {}
                Said::File(_) => {
                    let message = format!("`{path}` is a file, which a model cannot have sent");
                    return Err(BadRequest::new(path, message));
                }
            }
        }
        let text = text.filter(|text| !text.is_empty() || message.tool_calls.is_empty());
        self.messages.push(Message { content: text.map(Content::Text), ..message });
        Ok(())
    }
}

/// The parts of a content, each with its path.
fn parts<'a>(
    raw: Option<&'a RawValue>,
    path: &str,
) -> Result<Vec<(&'a RawValue, String)>, BadRequest> {
    let path = format!("{path}.parts");
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Ok(Vec::new()) };
    let each = list(raw, &path)?.into_iter().enumerate();
    Ok(each.map(|(at, raw)| (raw, format!("{path}[{at}]"))).collect())
}
