//! The requests, as a whole.

use std::borrow::Cow;

use protocol::json::{
    self, BadRequest,
    fields::{self, Text, TextOrList},
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Context;

/// Makes an Embeddings request from a request to `/api/embed`.
///
/// # Errors
/// [`BadRequest`] for an input that is neither a text nor a list of texts.
pub fn embed_request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let given: Embed<'_> = fields::body(body)?;
    let missing = || BadRequest::new("input", "`input` is missing");
    let input = given.input.ok_or_else(missing)?;
    if let TextOrList::List(texts) = TextOrList::read(input, "input")? {
        for (at, text) in texts.into_iter().enumerate() {
            fields::value::<Text<'_>>(text, format!("input[{at}]"))?;
        }
    }
    Ok(written(given.model.0, input, given.dimensions))
}

/// Makes an Embeddings request from a request to `/api/embeddings`.
///
/// # Errors
/// [`BadRequest`] for a prompt that is not a text.
pub fn embeddings_request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let given: Embeddings<'_> = fields::body(body)?;
    fields::text(given.prompt, "prompt")?;
    let missing = || BadRequest::new("prompt", "`prompt` is missing");
    Ok(written(given.model.0, given.prompt.ok_or_else(missing)?, None))
}

fn written(model: Cow<'_, str>, input: &RawValue, dimensions: Option<u64>) -> Vec<u8> {
    json::write(&Request { model, input, encoding_format: "float", dimensions }).into_bytes()
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Embed<'a> {
    model: Text<'a>,
    input: Option<&'a RawValue>,
    dimensions: Option<u64>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Embeddings<'a> {
    model: Text<'a>,
    prompt: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct Request<'a> {
    model: Cow<'a, str>,
    input: &'a RawValue,
    encoding_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u64>,
}
