//! The request, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Context,
    chat_request::{ChatRequest, Content, Message, Role, StreamOptions},
};

/// The system message when the request has none.
const DEFAULT_SYSTEM: &str = "You are a helpful assistant.";

/// The token limit when the request sets none.
const DEFAULT_TOKENS: u64 = 50;

/// Makes a Chat Completions request from a request to `/api/chat`. The [module](super) says what
/// becomes of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be read.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: Request<'_> = fields::body(body)?;
    Ok(json::write(&request.into_chat()?).into_bytes())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    messages: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    max_new_tokens: Option<&'a RawValue>,
}

/// A message as an object.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct WireMessage<'a> {
    role: Text<'a>,
    content: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    fn into_chat(self) -> Result<ChatRequest<'a>, BadRequest> {
        Ok(ChatRequest {
            messages: self.messages()?,
            max_tokens: Some(self.max_tokens()?),
            temperature: self.temperature()?,
            model: self.model.0,
            stream: true,
            stream_options: StreamOptions::with_usage(true),
            ..ChatRequest::default()
        })
    }

    fn messages(&self) -> Result<Vec<Message<'a>>, BadRequest> {
        let missing = || BadRequest::new("messages", "`messages` must hold at least one message");
        let said: Vec<&'a RawValue> =
            fields::value(self.messages.ok_or_else(missing)?, "messages")?;
        if said.is_empty() {
            return Err(missing());
        }
        let said = said.iter().enumerate().map(|(at, raw)| message(at, raw));
        self.system().transpose().into_iter().chain(said).collect()
    }

    fn system(&self) -> Result<Option<Message<'a>>, BadRequest> {
        let text = match self.system {
            Some(raw) => fields::text(Some(raw), "system")?,
            None => Cow::Borrowed(DEFAULT_SYSTEM),
        };
        let text = Some(text).filter(|text| !text.is_empty());
        Ok(text.map(|text| Message::new(Role::System, Content::Text(text))))
    }

    /// A value out of range counts as 0, as in stock servers.
    fn temperature(&self) -> Result<Option<&'a RawValue>, BadRequest> {
        let wanted = self.temperature.map(|raw| fields::value::<f64>(raw, "temperature"));
        let in_range = wanted.transpose()?.is_some_and(|it| (0.01..=0.99).contains(&it));
        Ok(self.temperature.filter(|_| in_range).or_else(|| serde_json::from_str("0").ok()))
    }

    fn max_tokens(&self) -> Result<u64, BadRequest> {
        let Some(raw) = self.max_new_tokens else { return Ok(DEFAULT_TOKENS) };
        let tokens = fields::value(raw, "max_new_tokens")?;
        let nothing = || BadRequest::new("max_new_tokens", "`max_new_tokens` must be at least 1");
        Some(tokens).filter(|tokens| *tokens > 0).ok_or_else(nothing)
    }
}

/// Reads the message at this index of the list.
fn message<'a>(at: usize, raw: &'a RawValue) -> Result<Message<'a>, BadRequest> {
    let path = format!("messages[{at}]");
    if raw.get().starts_with('"') {
        let role = if at.is_multiple_of(2) { Role::User } else { Role::Assistant };
        return Ok(Message::new(role, Content::Text(fields::text(Some(raw), path)?)));
    }
    let said: WireMessage<'a> = fields::value(raw, &path)?;
    let role = match said.role.0.as_ref() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        role => {
            let role = json::clip(role, 64);
            let message =
                format!("`{path}.role` is `{role}`; it must be user, assistant or system");
            return Err(BadRequest::new(format!("{path}.role"), message));
        }
    };
    Ok(Message::new(role, Content::Text(fields::text(said.content, format!("{path}.content"))?)))
}
