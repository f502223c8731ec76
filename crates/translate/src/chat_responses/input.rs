//! Messages as the items of `input`.

use std::borrow::Cow;

use protocol::json::{
    BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::join,
    from_chat::{self, Call, Message},
};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    /// A message of any role but `tool`.
    Message {
        role: &'static str,
        content: Content<'a>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: Cow<'a, str>,
    },
    /// What came of it.
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Content<'a>,
    },
}

/// The content of a message: a string if it is only text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Debug, Serialize)]
#[serde(tag = "type")]
pub(super) enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: Cow<'a, str>, detail: Cow<'a, str> },
    #[serde(rename = "input_file")]
    File {
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<Cow<'a, str>>,
        file_data: Cow<'a, str>,
    },
}

/// Reads `messages`, which must have at least one.
pub(super) fn items(messages: Option<&RawValue>) -> Result<Vec<Item<'_>>, BadRequest> {
    let missing = || BadRequest::new("messages", "`messages` must hold at least one message");
    let messages: Vec<&RawValue> = fields::value(messages.ok_or_else(missing)?, "messages")?;
    if messages.is_empty() {
        return Err(missing());
    }
    let mut items = Vec::with_capacity(messages.len());
    for (at, raw) in messages.iter().enumerate() {
        let path = format!("messages[{at}]");
        Message::read(raw, &path)?.add_to(&mut items, &path)?;
    }
    Ok(items)
}

impl<'a> Message<'a> {
    fn add_to(self, items: &mut Vec<Item<'a>>, path: &str) -> Result<(), BadRequest> {
        match self.role.0.as_ref() {
            "system" => items.push(self.message("system", path)?),
            "developer" => items.push(self.message("developer", path)?),
            "user" => items.push(self.message("user", path)?),
            "assistant" => self.add_assistant(items, path)?,
            "tool" => items.push(self.result(path)?),
            _ => return Err(self.wrong_role(path)),
        }
        Ok(())
    }

    fn message(&self, role: &'static str, path: &str) -> Result<Item<'a>, BadRequest> {
        let path = format!("{path}.content");
        let missing = || BadRequest::new(path.clone(), format!("`{path}` is missing"));
        Ok(Item::Message { role, content: content(self.content.ok_or_else(missing)?, &path)? })
    }

    /// Adds text before the calls. A message of the assistant can only hold text.
    fn add_assistant(self, items: &mut Vec<Item<'a>>, path: &str) -> Result<(), BadRequest> {
        let said = match self.content {
            Some(raw) => Some(content(raw, &format!("{path}.content"))?),
            None => self.refusal.map(|Text(text)| Content::Text(text)),
        };
        let said = said.filter(|said| !matches!(said, Content::Text(text) if text.is_empty()));
        items.extend(said.map(|content| Item::Message { role: "assistant", content }));
        let calls = self.tool_calls.iter().flatten().enumerate();
        for (at, raw) in calls {
            items.push(call(raw, &format!("{path}.tool_calls[{at}]"))?);
        }
        Ok(())
    }

    fn result(&self, path: &str) -> Result<Item<'a>, BadRequest> {
        let call_id = fields::text(self.tool_call_id, format!("{path}.tool_call_id"))?;
        let path = format!("{path}.content");
        let missing = || BadRequest::new(path.clone(), format!("`{path}` is missing"));
        let output = content(self.content.ok_or_else(missing)?, &path)?;
        Ok(Item::FunctionCallOutput { call_id, output })
    }
}

fn call<'a>(raw: &'a RawValue, path: &str) -> Result<Item<'a>, BadRequest> {
    let Call { id, name, arguments } = Call::read(raw, path)?;
    Ok(Item::FunctionCall { call_id: id, name, arguments })
}

fn content<'a>(raw: &'a RawValue, path: &str) -> Result<Content<'a>, BadRequest> {
    let pieces = match TextOrList::read(raw, path)? {
        TextOrList::Text(text) => return Ok(Content::Text(text)),
        TextOrList::List(pieces) => pieces,
    };
    let parts = pieces.iter().enumerate().map(|(at, raw)| part(raw, &format!("{path}[{at}]")));
    Ok(Content::of(parts.collect::<Result<_, _>>()?))
}

impl<'a> Content<'a> {
    /// Text parts become one string, one part to a line: an assistant's message must not hold input
    /// parts.
    fn of(parts: Vec<Part<'a>>) -> Self {
        if parts.iter().any(|part| !matches!(part, Part::Text { .. })) {
            return Self::Parts(parts);
        }
        let mut texts = parts.into_iter().filter_map(|part| match part {
            Part::Text { text } => Some(text),
            Part::Image { .. } | Part::File { .. } => None,
        });
        let first = texts.next().unwrap_or_default();
        Self::Text(texts.fold(first, |all, text| join(all, "\n", &text)))
    }
}

fn part<'a>(raw: &'a RawValue, path: &str) -> Result<Part<'a>, BadRequest> {
    Ok(match from_chat::Part::read(raw, path)? {
        from_chat::Part::Text(text) => Part::Text { text },
        from_chat::Part::Image { url, detail } => {
            Part::Image { image_url: url, detail: detail.unwrap_or("auto".into()) }
        }
        from_chat::Part::File { name, data } => Part::File { filename: name, file_data: data },
    })
}
