//! From Gemini's embeddings to OpenAI's.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | the text of `content.parts`, of each of `requests` | `input`, one text for each content |
//! | `outputDimensionality` | `dimensions`; it must be the same in all `requests` |
//! | `taskType`, `title`, `autoTruncate` and fields not known | dropped: models here have one kind of vector |
//! | parts that are no text | refused |
//!
//! Newer clients put the settings into `embedContentConfig`; they count like the fields beside it.

use std::borrow::Cow;

use protocol::{
    failure::BadAnswer,
    gemini::call::bare_name,
    json::{
        self, BadRequest,
        fields::{self, Text},
    },
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::answer::{Answer, Context, WholeAnswer};

/// The most contents of one request. The limit is Google's.
pub const MAX_CONTENTS: usize = 100;

/// The request for one content in the provider's shape.
///
/// # Errors
/// [`BadRequest`] for what cannot be carried over.
pub fn request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let request: EmbedRequest<'_> = fields::body(body)?;
    let dimensions = request.dimensions("")?;
    let model = request.model.as_ref().map(|Text(model)| &**model).unwrap_or_default();
    let input = vec![request.text("content")?];
    Ok(made(model, input, dimensions))
}

/// The request for several contents in the provider's shape.
///
/// # Errors
/// As [`request`].
pub fn batch_request(body: &[u8], _: &Context) -> Result<Vec<u8>, BadRequest> {
    let batch: EmbedBatch<'_> = fields::body(body)?;
    let model = batch.model.as_ref().map(|Text(model)| &**model).unwrap_or_default();
    let missing = || BadRequest::new("requests", "`requests` must hold at least one request");
    let requests: Vec<&RawValue> = fields::value(batch.requests.ok_or_else(missing)?, "requests")?;
    if requests.is_empty() {
        return Err(missing());
    }
    if requests.len() > MAX_CONTENTS {
        let message = format!("`requests` must hold no more than {MAX_CONTENTS} requests");
        return Err(BadRequest::new("requests", message));
    }
    let (mut input, mut dimensions) = (Vec::with_capacity(requests.len()), None);
    for (at, raw) in requests.into_iter().enumerate() {
        let path = format!("requests[{at}]");
        let one: EmbedRequest<'_> = fields::value(raw, &path)?;
        one.is_for(model, &path)?;
        let wanted = one.dimensions(&format!("{path}."))?;
        if at > 0 && wanted != dimensions {
            let path = format!("{path}.outputDimensionality");
            return Err(BadRequest::new(&*path, format!("`{path}` must be that of the others")));
        }
        dimensions = wanted;
        input.push(one.text(&format!("{path}.content"))?);
    }
    Ok(made(model, input, dimensions))
}

fn made(model: &str, input: Vec<Cow<'_, str>>, dimensions: Option<u64>) -> Vec<u8> {
    json::write(&EmbeddingRequest { model, input, dimensions, encoding_format: "float" })
        .into_bytes()
}

#[derive(Serialize)]
struct EmbeddingRequest<'a> {
    model: &'a str,
    input: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u64>,
    encoding_format: &'static str,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct EmbedBatch<'a> {
    model: Option<Text<'a>>,
    requests: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct EmbedRequest<'a> {
    model: Option<Text<'a>>,
    content: Option<&'a RawValue>,
    #[serde(alias = "output_dimensionality")]
    output_dimensionality: Option<&'a RawValue>,
    #[serde(alias = "embed_content_config")]
    embed_content_config: Option<AskedConfig<'a>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"), rename_all = "camelCase")]
struct AskedConfig<'a> {
    #[serde(alias = "output_dimensionality")]
    output_dimensionality: Option<&'a RawValue>,
}

impl<'a> EmbedRequest<'a> {
    /// Checks that one of several requests, if it names a model, names that of the whole.
    fn is_for(&self, model: &str, path: &str) -> Result<(), BadRequest> {
        match &self.model {
            Some(Text(own)) if bare_name(own) != model => {
                let path = format!("{path}.model");
                let (own, model) = (json::clip(own, 64), json::clip(model, 64));
                let message = format!("`{path}` is `{own}`, but the request is for `{model}`");
                Err(BadRequest::new(path, message))
            }
            _ => Ok(()),
        }
    }

    fn dimensions(&self, before: &str) -> Result<Option<u64>, BadRequest> {
        let config = self.embed_content_config.as_ref();
        let raw = self.output_dimensionality.or(config.and_then(|it| it.output_dimensionality));
        raw.map(|raw| fields::value(raw, format!("{before}outputDimensionality"))).transpose()
    }

    /// The text of the content; each part begins a line.
    fn text(&self, path: &str) -> Result<Cow<'a, str>, BadRequest> {
        let missing = || BadRequest::new(path, format!("`{path}` is missing"));
        let content: AskedContent<'a> = fields::value(self.content.ok_or_else(missing)?, path)?;
        let mut texts = Vec::new();
        for (at, part) in content.parts.into_iter().flatten().enumerate() {
            texts.push(fields::text(part.text, format!("{path}.parts[{at}].text"))?);
        }
        match texts.len() {
            0 => Err(BadRequest::new(path, format!("`{path}` has no text"))),
            1 => Ok(texts.swap_remove(0)),
            _ => Ok(texts.join("\n").into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedContent<'a> {
    parts: Option<Vec<AskedPart<'a>>>,
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct AskedPart<'a> {
    text: Option<&'a RawValue>,
}

/// Reads the provider's answer for one content.
pub fn answer(_: &Context, _: &[u8]) -> impl Answer + use<> {
    WholeAnswer::for_gemini(|body, _| {
        whole(body, |vectors| match vectors {
            [only] => Some(format!("{{\"embedding\":{only}}}")),
            _ => None,
        })
    })
}

/// Reads the provider's answer for several contents.
pub fn batch_answer(_: &Context, _: &[u8]) -> impl Answer + use<> {
    WholeAnswer::for_gemini(|body, _| {
        whole(body, |vectors| Some(format!("{{\"embeddings\":[{}]}}", vectors.join(","))))
    })
}

/// The client's answer. `write` makes it from vectors as JSON; it returns `None` if their number is
/// wrong.
fn whole(body: &[u8], write: fn(&[String]) -> Option<String>) -> Result<String, BadAnswer> {
    let unread = || BadAnswer("the backend's embeddings are not understood".to_owned());
    let list: List<'_> = serde_json::from_slice(body).map_err(|_| unread())?;
    let mut data = list.data;
    // Sorted into the order of the texts, since servers may send vectors in any order.
    data.sort_by_key(|one| one.index.unwrap_or(0));
    let vectors: Vec<String> =
        data.iter().map(|one| format!("{{\"values\":{}}}", one.embedding.get())).collect();
    let are_lists = data.iter().all(|one| one.embedding.get().starts_with('['));
    write(&vectors).filter(|_| are_lists).ok_or_else(unread)
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    data: Vec<One<'a>>,
}

#[derive(Deserialize)]
struct One<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    embedding: &'a RawValue,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{answer::Body, kit::answered};

    fn context() -> Context {
        Context { id: "0".repeat(32), created: 1, model: "m".to_owned(), streaming: false }
    }

    fn content(text: &str) -> Value {
        json!({"parts": [{"text": text}]})
    }

    fn read(body: Result<Vec<u8>, BadRequest>) -> Value {
        serde_json::from_slice(&body.unwrap()).unwrap()
    }

    #[test]
    fn contents_become_texts() {
        let one = json!({"model": "m", "content": content("a"), "taskType": "RETRIEVAL_QUERY",
            "output_dimensionality": 8});
        let made = read(request(one.to_string().as_bytes(), &context()));
        let expected =
            json!({"model": "m", "input": ["a"], "dimensions": 8, "encoding_format": "float"});
        assert_eq!(made, expected);
        let two_parts = json!({"parts": [{"text": "b"}, {"text": "c"}]});
        let config = json!({"outputDimensionality": 8});
        let several = json!({"model": "m", "requests": [
            {"model": "models/m", "content": content("a"), "outputDimensionality": 8},
            {"content": two_parts, "embedContentConfig": config}]});
        let made = read(batch_request(several.to_string().as_bytes(), &context()));
        assert_eq!((&made["input"], &made["dimensions"]), (&json!(["a", "b\nc"]), &json!(8)));
    }

    #[test]
    fn what_cannot_be_embedded_is_refused_by_name() {
        let refused = |body: Value, batch: bool| {
            let read = if batch { batch_request } else { request };
            read(body.to_string().as_bytes(), &context()).unwrap_err().param.unwrap()
        };
        let picture = json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": ""}}]});
        for (body, param) in [
            (json!({"model": "m"}), "content"),
            (json!({"model": "m", "content": {}}), "content"),
            (json!({"model": "m", "content": picture}), "content.parts[0].text"),
            (
                json!({"model": "m", "content": content("a"), "outputDimensionality": -1}),
                "outputDimensionality",
            ),
        ] {
            assert_eq!(refused(body, false), param);
        }
        let one = json!({"content": content("a")});
        let other = json!({"content": content("a"), "outputDimensionality": 3});
        let foreign = json!({"content": content("a"), "model": "models/n"});
        for (requests, param) in [
            (json!([]), "requests"),
            (json!(vec![&one; MAX_CONTENTS + 1]), "requests"),
            (json!([one, other]), "requests[1].outputDimensionality"),
            (json!([foreign]), "requests[0].model"),
            (json!([one, {}]), "requests[1].content"),
        ] {
            assert_eq!(refused(json!({"model": "m", "requests": requests}), true), param);
        }
    }

    #[test]
    fn vectors_come_in_the_order_of_their_texts() {
        let data = r#"{"data":[{"index":1,"embedding":[2.50]},{"index":0,"embedding":[1]}]}"#;
        let answer_of = |status, text: &str| {
            answered(batch_answer(&context(), b""), status, Body::Json, &[text.as_bytes()])
        };
        let expected = r#"{"embeddings":[{"values":[1]},{"values":[2.50]}]}"#;
        assert_eq!(answer_of(200, data).unwrap(), expected);
        let text = r#"{"data":[{"index":0,"embedding":"AAAA"}]}"#;
        assert!(answer_of(200, text).is_err() && answer_of(200, "{}").is_err());
        let refused = answer_of(400, r#"{"error":{"message":"no"}}"#).unwrap();
        assert!(refused.contains("INVALID_ARGUMENT"));
        let one = answered(answer(&context(), b""), 200, Body::Json, &[data.as_bytes()]);
        assert!(one.is_err(), "one was asked for");
    }
}
