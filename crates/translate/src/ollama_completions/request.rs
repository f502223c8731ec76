//! The request, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Context, chat_request::StreamOptions, ollama::options::Options};

/// The most tokens of an answer to a request that sets no limit.
const DEFAULT_TOKENS: u64 = 1024;

/// Makes a Completions request from a request to `/api/generate`. The [module](super) says what
/// becomes of each parameter.
///
/// # Errors
/// [`BadRequest`] for what cannot be read or carried over.
pub fn request(body: &[u8], context: &Context) -> Result<Vec<u8>, BadRequest> {
    let given: Request<'_> = fields::body(body)?;
    fields::refuse(
        &[("images", given.images), ("format", given.format), ("context", given.context)],
        "cannot go with `raw` or `suffix`",
    )?;
    let options = Options::read(body, given.options)?;
    let prompt = given.prompt.map(|raw| fields::text(Some(raw), "prompt")).transpose()?;
    let suffix = given.suffix.map(|raw| fields::text(Some(raw), "suffix")).transpose()?;
    let request = Completion {
        model: given.model.0,
        prompt: prompt.unwrap_or_default(),
        suffix: suffix.filter(|suffix| !suffix.is_empty()),
        max_tokens: options.max_tokens().unwrap_or(DEFAULT_TOKENS),
        temperature: options.temperature,
        top_p: options.top_p,
        top_k: options.top_k,
        min_p: options.min_p,
        seed: options.seed,
        stop: options.stop,
        repeat_penalty: options.repeat_penalty,
        presence_penalty: options.presence_penalty,
        frequency_penalty: options.frequency_penalty,
        stream: context.streaming,
        stream_options: StreamOptions::with_usage(context.streaming),
    };
    Ok(json::write(&request).into_bytes())
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Request<'a> {
    model: Text<'a>,
    prompt: Option<&'a RawValue>,
    suffix: Option<&'a RawValue>,
    images: Option<&'a RawValue>,
    format: Option<&'a RawValue>,
    context: Option<&'a RawValue>,
    options: Option<&'a RawValue>,
}

/// A Completions request, with OpenAI's fields and further ones that local servers know.
#[derive(Serialize)]
struct Completion<'a> {
    model: Cow<'a, str>,
    prompt: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suffix: Option<Cow<'a, str>>,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_p: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat_penalty: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<&'a RawValue>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}
