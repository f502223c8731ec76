//! Messages as the items of `input`.

use std::borrow::Cow;

use protocol::json::{
    BadRequest,
    fields::{Text, TextOrList},
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    chat_request::join,
    from_chat::{self, Call, Message},
    ids,
    thoughts::{SealedThought, Thought},
    turns::{self, Turn},
};

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    /// A thought. It has no id, by which a server would look for a stored item.
    Reasoning {
        summary: Vec<Summary<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<Cow<'a, str>>,
    },
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
    /// The result of the call.
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: Content<'a>,
    },
}

/// A thought's text. It is a `summary_text`, because OpenAI's servers refuse `reasoning_text` here,
/// and all others read both.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "summary_text")]
pub(super) struct Summary<'a> {
    text: Cow<'a, str>,
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
    let turns = turns::read(messages, |id| ids::at_most(id, ids::OPENAI_ID))?;
    if turns.is_empty() {
        let message = "`messages` must hold at least one message";
        return Err(BadRequest::new("messages", message));
    }
    let mut items = Vec::with_capacity(turns.len());
    for turn in turns {
        turn.add_to(&mut items)?;
    }
    Ok(items)
}

impl<'a> Turn<'a> {
    fn add_to(self, items: &mut Vec<Item<'a>>) -> Result<(), BadRequest> {
        let Self { path, message, calls, answers } = self;
        match message.role.0.as_ref() {
            "system" => items.push(message.message("system", &path)?),
            "developer" => items.push(message.message("developer", &path)?),
            "user" => items.push(message.message("user", &path)?),
            "assistant" => message.add_assistant(calls, items, &path)?,
            "tool" => items.push(message.result(answers.unwrap_or_default(), &path)?),
            _ => return Err(message.wrong_role(&path)),
        }
        Ok(())
    }
}

impl<'a> Message<'a> {
    fn message(&self, role: &'static str, path: &str) -> Result<Item<'a>, BadRequest> {
        let path = format!("{path}.content");
        let missing = || BadRequest::new(path.clone(), format!("`{path}` is missing"));
        Ok(Item::Message { role, content: content(self.content.ok_or_else(missing)?, &path)? })
    }

    /// Adds thoughts and text before the calls. A message of the assistant can only hold text.
    fn add_assistant(
        self,
        calls: Vec<Call<'a>>,
        items: &mut Vec<Item<'a>>,
        path: &str,
    ) -> Result<(), BadRequest> {
        items.extend(self.thoughts.into_iter().filter_map(thought));
        let said = match self.content {
            Some(raw) => Some(content(raw, &format!("{path}.content"))?),
            None => self.refusal.map(|Text(text)| Content::Text(text)),
        };
        let said = said.filter(|said| !matches!(said, Content::Text(text) if text.is_empty()));
        items.extend(said.map(|content| Item::Message { role: "assistant", content }));
        let call =
            |Call { id, name, arguments }| Item::FunctionCall { call_id: id, name, arguments };
        items.extend(calls.into_iter().map(call));
        Ok(())
    }

    /// A result without content is an empty one.
    fn result(&self, call_id: Cow<'a, str>, path: &str) -> Result<Item<'a>, BadRequest> {
        let read = self.content.map(|raw| content(raw, &format!("{path}.content")));
        let output = read.transpose()?.unwrap_or(Content::Text("".into()));
        Ok(Item::FunctionCallOutput { call_id, output })
    }
}

/// A thought as an item; `None` for an empty one. Of encrypted thoughts, only OpenAI's are carried
/// over.
fn thought(thought: Thought<'_>) -> Option<Item<'_>> {
    let Thought { text, sealed, .. } = thought;
    let encrypted_content = match sealed {
        Some(SealedThought::OpenAi { data }) => Some(data),
        _ => None,
    };
    let summary: Vec<_> = Some(text)
        .filter(|text| !text.is_empty())
        .map(|text| Summary { text })
        .into_iter()
        .collect();
    let is_empty = summary.is_empty() && encrypted_content.is_none();
    (!is_empty).then_some(Item::Reasoning { summary, encrypted_content })
}

fn content<'a>(raw: &'a RawValue, path: &str) -> Result<Content<'a>, BadRequest> {
    let pieces = match TextOrList::read(raw, path)? {
        TextOrList::Text(text) => return Ok(Content::Text(text)),
        TextOrList::List(pieces) => pieces,
    };
    let parts = pieces.iter().enumerate().map(|(at, raw)| part(raw, &format!("{path}[{at}]")));
    Ok(Content::of(parts.filter_map(Result::transpose).collect::<Result<_, _>>()?))
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

fn part<'a>(raw: &'a RawValue, path: &str) -> Result<Option<Part<'a>>, BadRequest> {
    Ok(Some(match from_chat::Part::read(raw, path)? {
        from_chat::Part::Text(text) => Part::Text { text },
        from_chat::Part::Image { url, detail } => {
            Part::Image { image_url: url, detail: detail.unwrap_or("auto".into()) }
        }
        from_chat::Part::File { name, data } => Part::File { filename: name, file_data: data },
        from_chat::Part::Thought => return Ok(None),
    }))
}
