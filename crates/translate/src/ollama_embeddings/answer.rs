//! The vectors of an answer.

use std::time::Duration;

use protocol::{
    failure::{BadAnswer, Failure},
    json::{self, JsonReader, lenient::Count},
    ollama::reply::error_body,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    answer::{Answer, Context, WholeAnswer},
    chat::{Usage, not_understood},
    ollama::clock::nanos,
};

/// Which of the two requests is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `embeddings`, a list of vectors.
    Embed,
    /// `embedding`, one vector.
    Embeddings,
}

/// Writes the client's answer.
#[derive(Debug)]
struct Vectors {
    form: Form,
    model: String,
}

/// Translates the provider's answer.
pub(super) fn answer(form: Form, context: &Context) -> impl Answer + use<> {
    let vectors = Vectors { form, model: context.model.clone() };
    let refuse = |_, body: Vec<u8>| error_body(&Failure::read(&body).message).into_bytes();
    WholeAnswer::new(refuse, move |body, since| vectors.read(body, since))
}

impl Vectors {
    fn read(&self, body: &[u8], since: Duration) -> Result<String, BadAnswer> {
        let mut reader = JsonReader::default();
        let answer: Given<'_> = reader.whole(body).map_err(not_understood)?;
        if answer.error.is_some() {
            return Err(BadAnswer(Failure::read(body).message));
        }
        self.write(&answer, since)
    }

    fn write(&self, answer: &Given<'_>, since: Duration) -> Result<String, BadAnswer> {
        let none = || BadAnswer("the backend's answer has no vectors".to_owned());
        let data = answer.data.as_deref().ok_or_else(none)?;
        let mut vectors: Vec<&Vector<'_>> = data.iter().collect();
        vectors.sort_by_key(|vector| vector.index.0);
        if vectors.iter().any(|vector| !vector.embedding.get().starts_with('[')) {
            let why = "the backend's vectors are no lists of numbers";
            return Err(BadAnswer(why.to_owned()));
        }
        match self.form {
            Form::Embed => Ok(json::write(&EmbedAnswer {
                model: &self.model,
                embeddings: vectors.iter().map(|vector| vector.embedding).collect(),
                total_duration: nanos(since),
                load_duration: 0,
                prompt_eval_count: answer.usage.and_then(|usage| usage.prompt_tokens.0),
            })),
            Form::Embeddings => {
                let first = vectors.first().ok_or_else(none)?;
                Ok(json::write(&One { embedding: first.embedding }))
            }
        }
    }
}

#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    data: Option<Vec<Vector<'a>>>,
    usage: Option<Usage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Vector<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow)]
    embedding: &'a RawValue,
}

#[derive(Serialize)]
struct EmbedAnswer<'a> {
    model: &'a str,
    embeddings: Vec<&'a RawValue>,
    total_duration: u64,
    load_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_eval_count: Option<u64>,
}

#[derive(Serialize)]
struct One<'a> {
    embedding: &'a RawValue,
}
