//! The vectors of an answer.

use std::time::Duration;

use protocol::{
    failure::{BadAnswer, Failure, MAX_KEPT},
    json::{self, JsonReader, lenient::Count},
    ollama::reply::error_body,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    answer::{Answer, Body},
    chat::{Usage, not_understood},
    context::Context,
    ollama::clock::Clock,
};

/// Which of the two requests is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `embeddings`, a list of vectors.
    Embed,
    /// `embedding`, one vector.
    Embeddings,
}

/// Keeps an answer and writes its vectors at its end.
#[derive(Debug)]
pub(super) struct Vectors {
    form: Form,
    model: String,
    clock: Clock,
    status: u16,
    kept: Vec<u8>,
}

impl Vectors {
    pub(super) fn new(form: Form, context: &Context) -> Self {
        let clock = Clock::new(context.created);
        Self { form, model: context.model.clone(), clock, status: 200, kept: Vec::new() }
    }

    fn write(&self, answer: &Given<'_>) -> Result<String, BadAnswer> {
        let none = || BadAnswer("the backend's answer has no vectors".to_owned());
        let data = answer.data.as_deref().ok_or_else(none)?;
        let mut vectors: Vec<&Vector<'_>> = data.iter().collect();
        vectors.sort_by_key(|vector| vector.index.0);
        if vectors.iter().any(|vector| !vector.embedding.get().starts_with('[')) {
            let why = "the backend's vectors are no lists of numbers";
            return Err(BadAnswer(why.to_owned()));
        }
        match self.form {
            Form::Embed => Ok(json::write(&Embedded {
                model: &self.model,
                embeddings: vectors.iter().map(|vector| vector.embedding).collect(),
                total_duration: self.clock.durations().total,
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
struct Embedded<'a> {
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

impl Answer for Vectors {
    fn head(&mut self, status: u16, _: Body) -> (u16, Body) {
        self.status = status;
        (status, Body::Json)
    }

    fn passed(&mut self, since: Duration) {
        self.clock.passed(since);
    }

    fn feed(&mut self, chunk: &[u8], _: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.kept.len() + chunk.len() > MAX_KEPT {
            return Err(BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes")));
        }
        self.kept.extend_from_slice(chunk);
        Ok(())
    }

    fn is_over(&self) -> bool {
        false
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.status >= 400 {
            let failure = Failure::read(&self.kept);
            out.extend_from_slice(error_body(&failure.message).as_bytes());
            return Ok(());
        }
        let mut reader = JsonReader::default();
        let answer: Given<'_> = reader.whole(&self.kept).map_err(not_understood)?;
        if answer.error.is_some() {
            return Err(BadAnswer(Failure::read(&self.kept).message));
        }
        out.extend_from_slice(self.write(&answer)?.as_bytes());
        Ok(())
    }
}
