//! The request, as a whole.

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Context,
    chat_request::{ChatRequest, Content, Message, Role, StreamOptions},
    ollama::{
        options::Options,
        pictures,
        settings::{Think, format},
    },
};

/// Makes a Chat Completions request from a request to `/api/generate`. The [module](super) says what
/// becomes of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be read or carried over.
pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest> {
    let given: Request<'_> = fields::body(body)?;
    fields::refuse(
        &[("template", given.template), ("context", given.context)],
        "cannot be carried over to the Chat Completions of the model server",
    )?;
    let options = Options::read(body, given.options)?;
    let request = ChatRequest {
        messages: given.messages()?,
        model: given.model.0,
        response_format: format(given.format)?,
        stream: context.streaming,
        stream_options: StreamOptions::with_usage(context.streaming),
        ..ChatRequest::default()
    };
    let request = Think::read(given.think)?.apply(options.apply(request));
    Ok(json::write(&request).into_bytes())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    prompt: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    images: Option<Vec<&'a RawValue>>,
    format: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
    think: Option<&'a RawValue>,
    template: Option<&'a RawValue>,
    context: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    fn messages(&self) -> Result<Vec<Message<'a>>, BadRequest> {
        let prompt = fields::text(self.prompt, "prompt")?;
        let pictures = self.images.as_deref().unwrap_or_default();
        let prompt = Message::new(Role::User, pictures::content(prompt, pictures, "images")?);
        let system = self.system.map(|raw| fields::text(Some(raw), "system")).transpose()?;
        let system = system.filter(|text| !text.is_empty());
        let system = system.map(|text| Message::new(Role::System, Content::Text(text)));
        Ok(system.into_iter().chain([prompt]).collect())
    }
}
