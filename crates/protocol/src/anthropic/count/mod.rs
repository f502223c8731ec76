//! Estimates the tokens of a Messages request while reading it. It keeps nothing of the request:
//! the parsed tree of a body of small messages would take many times the body's memory.
//!
//! - `estimator`: reads a value where a certain type is expected
//! - `text`: counts the text of a value

mod estimator;
#[cfg(test)]
mod tests;
mod text;

use serde::{
    Deserialize,
    de::{MapAccess, SeqAccess},
};
use serde_json::{Deserializer, Error};

use self::{
    estimator::{At, Estimator, Key, List, skip, tokens, value},
    text::Text,
};
use crate::{
    json::BadRequest,
    usage::{IMAGE_TOKENS, estimate_tokens},
};

/// The tokens of a message or a tool besides its text: its role and its frame.
const FRAME_TOKENS: u64 = 4;

/// Estimates `input_tokens` of a body of `POST /v1/messages/count_tokens`.
///
/// Texts are counted as [`estimate_tokens`] does, tools by the text of their names, descriptions and
/// schemas, calls by their input, each picture and each non-text document as [`IMAGE_TOKENS`], and a
/// few tokens for the frame of each message and tool. Thoughts of earlier turns do not count, because
/// they are not sent.
///
/// # Errors
/// [`BadRequest`] when the body is not a JSON object with a list of `messages`.
pub fn count_tokens(body: &[u8]) -> Result<u64, BadRequest> {
    let request = read(body).map_err(|error| BadRequest {
        param: None,
        message: format!("the request body cannot be read: {error}"),
    })?;
    if request.messages.is_none() {
        return Err(BadRequest::new("messages", "`messages` must be a list of messages"));
    }
    Ok(request.tokens())
}

fn read(body: &[u8]) -> Result<Request, Error> {
    let mut reader = Deserializer::from_slice(body);
    let At(request) = At::deserialize(&mut reader)?;
    reader.end()?;
    Ok(request)
}

#[derive(Default)]
struct Request {
    system: u64,
    /// `None` unless there is a list of them.
    messages: Option<u64>,
    tools: u64,
}

impl Estimator for Request {
    fn field<'de, M: MapAccess<'de>>(&mut self, key: Key, map: &mut M) -> Result<(), M::Error> {
        match key {
            Key::System => self.system = tokens::<Content, _>(map)?,
            Key::Messages => self.messages = value::<List<Message>, _>(map)?.total,
            Key::Tools => self.tools = tokens::<List<Tool>, _>(map)?,
            _ => skip(map)?,
        }
        Ok(())
    }

    fn tokens(&self) -> u64 {
        self.system + self.messages.unwrap_or(0) + self.tools
    }
}

#[derive(Default)]
struct Message(u64);

impl Estimator for Message {
    fn field<'de, M: MapAccess<'de>>(&mut self, key: Key, map: &mut M) -> Result<(), M::Error> {
        match key {
            Key::Content => self.0 = tokens::<Content, _>(map)?,
            _ => skip(map)?,
        }
        Ok(())
    }

    fn tokens(&self) -> u64 {
        FRAME_TOKENS + self.0
    }
}

#[derive(Default)]
struct Tool {
    name: u64,
    description: u64,
    schema: u64,
}

impl Estimator for Tool {
    fn field<'de, M: MapAccess<'de>>(&mut self, key: Key, map: &mut M) -> Result<(), M::Error> {
        match key {
            Key::Name => self.name = map.next_value::<Text>()?.tokens,
            Key::Description => self.description = map.next_value::<Text>()?.tokens,
            Key::InputSchema => self.schema = map.next_value::<Text>()?.tokens,
            _ => skip(map)?,
        }
        Ok(())
    }

    fn tokens(&self) -> u64 {
        FRAME_TOKENS + self.name + self.description + self.schema
    }
}

/// A string, or blocks.
#[derive(Default)]
struct Content(u64);

impl Estimator for Content {
    fn string(&mut self, text: &str) {
        self.0 = estimate_tokens(text);
    }

    fn list<'de, S: SeqAccess<'de>>(&mut self, list: S) -> Result<(), S::Error> {
        let mut blocks = List::<Block>::default();
        blocks.list(list)?;
        self.0 = blocks.tokens();
        Ok(())
    }

    fn tokens(&self) -> u64 {
        self.0
    }
}

/// A block of content. Its fields are counted after all of them have been read, because its type
/// may come last.
#[derive(Default)]
struct Block {
    kind: Kind,
    text: u64,
    name: u64,
    input: u64,
    content: u64,
    source: Source,
}

impl Estimator for Block {
    fn field<'de, M: MapAccess<'de>>(&mut self, key: Key, map: &mut M) -> Result<(), M::Error> {
        match key {
            Key::Type => self.kind = value(map)?,
            Key::Text => self.text = map.next_value::<Text>()?.tokens,
            Key::Name => self.name = map.next_value::<Text>()?.tokens,
            Key::Input => self.input = map.next_value::<Text>()?.tokens,
            Key::Content => self.content = tokens::<Content, _>(map)?,
            Key::Source => self.source = value(map)?,
            _ => skip(map)?,
        }
        Ok(())
    }

    fn tokens(&self) -> u64 {
        match self.kind {
            Kind::Text => self.text,
            Kind::Image => IMAGE_TOKENS,
            Kind::Document => self.source.tokens(),
            Kind::ToolUse => FRAME_TOKENS + self.name + self.input,
            Kind::Thinking | Kind::None => 0,
            Kind::Content | Kind::Other => self.content,
        }
    }
}

#[derive(Default)]
struct Source {
    kind: Kind,
    data: u64,
    content: u64,
}

impl Estimator for Source {
    fn field<'de, M: MapAccess<'de>>(&mut self, key: Key, map: &mut M) -> Result<(), M::Error> {
        match key {
            Key::Type => self.kind = value(map)?,
            Key::Data => self.data = map.next_value::<Text>()?.tokens,
            Key::Content => self.content = tokens::<Content, _>(map)?,
            _ => skip(map)?,
        }
        Ok(())
    }

    fn tokens(&self) -> u64 {
        match self.kind {
            Kind::Text => self.data,
            Kind::Content => self.content,
            _ => IMAGE_TOKENS,
        }
    }
}

/// The type that a block or a source gives.
#[derive(Default)]
enum Kind {
    #[default]
    None,
    Text,
    Image,
    Document,
    Thinking,
    ToolUse,
    Content,
    Other,
}

impl Estimator for Kind {
    fn string(&mut self, text: &str) {
        *self = match text {
            "text" => Self::Text,
            "image" => Self::Image,
            "document" => Self::Document,
            "thinking" | "redacted_thinking" => Self::Thinking,
            "tool_use" => Self::ToolUse,
            "content" => Self::Content,
            _ => Self::Other,
        };
    }

    fn tokens(&self) -> u64 {
        0
    }
}
