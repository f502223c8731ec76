//! Messages as the items of `input`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    json,
    openai::chat_request::join,
    translate::{
        BadRequest,
        fields::{self, Text, TextOrList},
    },
};

/// An item of `input`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'a> {
    /// A message of any role but `tool`.
    Message { role: &'static str, content: Content<'a> },
    /// A call that the assistant made.
    FunctionCall { call_id: Cow<'a, str>, name: Cow<'a, str>, arguments: Cow<'a, str> },
    /// What came of it.
    FunctionCallOutput { call_id: Cow<'a, str>, output: Content<'a> },
}

/// What a message says: a string where it is all text.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

/// A piece of content.
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

/// Reads `messages`, of which there must be one at least.
pub(super) fn items(messages: Option<&RawValue>) -> Result<Vec<Item<'_>>, BadRequest> {
    let missing = || BadRequest::new("messages", "`messages` must hold at least one message");
    let messages: Vec<&RawValue> = fields::value(messages.ok_or_else(missing)?, "messages")?;
    if messages.is_empty() {
        return Err(missing());
    }
    let mut items = Vec::with_capacity(messages.len());
    for (at, raw) in messages.iter().enumerate() {
        let path = format!("messages[{at}]");
        let message: Message<'_> = fields::value(raw, &path)?;
        message.add_to(&mut items, &path)?;
    }
    Ok(items)
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    fn add_to(self, items: &mut Vec<Item<'a>>, path: &str) -> Result<(), BadRequest> {
        match self.role.0.as_ref() {
            "system" => items.push(self.message("system", path)?),
            "developer" => items.push(self.message("developer", path)?),
            "user" => items.push(self.message("user", path)?),
            "assistant" => self.add_assistant(items, path)?,
            "tool" => items.push(self.result(path)?),
            role => {
                let role = json::clip(role, 64);
                let message = format!(
                    "`{path}.role` is `{role}`; it must be system, developer, user, assistant or \
                     tool"
                );
                return Err(BadRequest::new(format!("{path}.role"), message));
            }
        }
        Ok(())
    }

    fn message(&self, role: &'static str, path: &str) -> Result<Item<'a>, BadRequest> {
        let path = format!("{path}.content");
        let missing = || BadRequest::new(path.clone(), format!("`{path}` is missing"));
        Ok(Item::Message { role, content: content(self.content.ok_or_else(missing)?, &path)? })
    }

    /// Words come before the calls. A message of the assistant holds text alone.
    fn add_assistant(self, items: &mut Vec<Item<'a>>, path: &str) -> Result<(), BadRequest> {
        if self.function_call.is_some() {
            let path = format!("{path}.function_call");
            return Err(BadRequest::new(
                &*path,
                format!("`{path}` is no longer spoken; use `tool_calls`"),
            ));
        }
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
    let asked: Call<'a> = fields::value(raw, path)?;
    let missing = || {
        let message = format!("`{path}` has no `function`; only functions can be carried over");
        BadRequest::new(path, message)
    };
    let function = asked.function.ok_or_else(missing)?;
    let arguments = function.arguments.map_or(Cow::Borrowed(""), |Text(text)| text);
    Ok(Item::FunctionCall {
        call_id: fields::text(asked.id, format!("{path}.id"))?,
        name: fields::text(function.name, format!("{path}.function.name"))?,
        arguments: if arguments.trim().is_empty() { "{}".into() } else { arguments },
    })
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
    /// Texts alone are one string, one to a line: an assistant's message may hold no input.
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
    let piece: Piece<'a> = fields::value(raw, path)?;
    match (piece.kind.0.as_ref(), piece.image_url, piece.file) {
        ("text", ..) => Ok(Part::Text { text: fields::text(piece.text, format!("{path}.text"))? }),
        ("refusal", ..) => {
            Ok(Part::Text { text: fields::text(piece.refusal, format!("{path}.refusal"))? })
        }
        ("image_url", Some(image), _) => Ok(Part::Image {
            image_url: fields::text(image.url, format!("{path}.image_url.url"))?,
            detail: image.detail.map_or("auto".into(), |Text(detail)| detail),
        }),
        ("file", _, Some(file)) => Ok(Part::File {
            filename: file.filename.map(|Text(name)| name),
            file_data: fields::text(file.file_data, format!("{path}.file.file_data"))?,
        }),
        (kind, ..) => {
            let kind = json::clip(kind, 64);
            let message = format!(
                "`{path}` is of type `{kind}`, which cannot be carried over to the model server"
            );
            Err(BadRequest::new(path, message))
        }
    }
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    refusal: Option<&'a RawValue>,
    #[serde(borrow)]
    image_url: Option<Image<'a>>,
    #[serde(borrow)]
    file: Option<File<'a>>,
}

#[derive(Deserialize)]
struct Image<'a> {
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    #[serde(borrow)]
    detail: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    filename: Option<Text<'a>>,
    #[serde(borrow)]
    file_data: Option<&'a RawValue>,
}
