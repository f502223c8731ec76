//! The request, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Context,
    chat_request::{ChatRequest, Content, Message, Role, StreamOptions},
};

/// Makes a Chat Completions request from a Completions request. The [module](super) says what
/// becomes of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: Request<'_> = fields::body(body)?;
    request.refuse()?;
    Ok(json::write(&request.into_chat()?).into_bytes())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    prompt: Option<&'a RawValue>,
    max_tokens: Option<u64>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_k: Option<&'a RawValue>,
    stop: Option<&'a RawValue>,
    seed: Option<&'a RawValue>,
    frequency_penalty: Option<&'a RawValue>,
    presence_penalty: Option<&'a RawValue>,
    logit_bias: Option<&'a RawValue>,
    user: Option<Text<'a>>,
    stream: Option<bool>,
    suffix: Option<&'a RawValue>,
    echo: Option<&'a RawValue>,
    logprobs: Option<&'a RawValue>,
    best_of: Option<&'a RawValue>,
    n: Option<&'a RawValue>,
}

impl<'a> Request<'a> {
    fn refuse(&self) -> Result<(), BadRequest> {
        let several = |raw: &&RawValue| raw.get() != "1";
        let parameters = [
            ("suffix", self.suffix),
            ("echo", self.echo),
            ("logprobs", self.logprobs),
            ("best_of", self.best_of.filter(several)),
            ("n", self.n.filter(several)),
        ];
        fields::refuse(
            &parameters,
            "cannot be carried over to the Chat Completions of the model server",
        )
    }

    fn into_chat(self) -> Result<ChatRequest<'a>, BadRequest> {
        let stream = self.stream.unwrap_or(false);
        Ok(ChatRequest {
            model: self.model.0,
            messages: vec![Message::new(Role::User, Content::Text(prompt(self.prompt)?))],
            max_tokens: self.max_tokens,
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k,
            stop: self.stop,
            seed: self.seed,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            logit_bias: self.logit_bias,
            user: self.user.map(|Text(user)| user),
            stream,
            stream_options: StreamOptions::with_usage(stream),
            ..ChatRequest::default()
        })
    }
}

fn prompt(raw: Option<&RawValue>) -> Result<Cow<'_, str>, BadRequest> {
    let missing = || BadRequest::new("prompt", "`prompt` is missing");
    match TextOrList::read(raw.ok_or_else(missing)?, "prompt")? {
        TextOrList::Text(prompt) => Ok(prompt),
        TextOrList::List(prompts) => match prompts.as_slice() {
            [prompt] if prompt.get().starts_with('"') => fields::text(Some(prompt), "prompt[0]"),
            _ => {
                let message = "`prompt` must be one string: several prompts, or tokens, cannot be \
                               carried over to the Chat Completions of the model server";
                Err(BadRequest::new("prompt", message))
            }
        },
    }
}
