//! The common parts of Chat Completions and Completions.

use protocol::{failure::BadAnswer, json, json::JsonReader};
use serde_json::{Value, json};

use super::{
    record::{Record, Repetition},
    shape::{self, Object, Stitch},
    tokens::{Before, CHAT},
};

/// The fields that are the same in every chunk of an answer.
const OF_THE_ANSWER: [&str; 6] =
    ["id", "object", "created", "model", "system_fingerprint", "service_tier"];

/// The data of the last event.
pub(super) const DONE: &[u8] = b"[DONE]";

/// The fields of the first chunk that all chunks of the answer repeat.
#[derive(Debug, Clone, Default)]
pub(super) struct Head(Option<Object>);

impl Head {
    /// Takes them from the first chunk.
    pub(super) fn read(&mut self, data: &[u8]) {
        if self.0.is_some() {
            return;
        }
        let Ok(mut chunk) = serde_json::from_slice::<Object>(data) else { return };
        chunk.retain(|name, _| OF_THE_ANSWER.contains(&name.as_str()));
        self.0 = Some(chunk);
    }

    /// Gives a chunk of another provider the fields of this answer.
    fn put_on(&self, chunk: &mut Object) {
        let Some(head) = &self.0 else { return };
        OF_THE_ANSWER.iter().for_each(|name| drop(chunk.remove(*name)));
        chunk.extend(head.clone());
    }

    /// Writes the chunks that end an answer: one with a finish reason, unless that was delivered,
    /// and the last event.
    pub(super) fn close(&self, record: &Record, mut choice: Value, out: &mut Vec<u8>) {
        if !record.finished {
            choice["index"] = 0.into();
            choice["finish_reason"] = "length".into();
            let mut chunk = self.0.clone().unwrap_or_default();
            chunk.insert("choices".to_owned(), json!([choice]));
            write(&chunk, out);
        }
        done(out);
    }
}

/// Makes the rest of an answer from another provider's chunks.
#[derive(Debug)]
pub(super) struct ChunkStitch {
    head: Head,
    before: Before,
    repetition: Repetition,
    over: bool,
    /// Removes from a choice what the client already has. Returns whether anything is left.
    choice: fn(&mut Object, &mut Repetition) -> bool,
}

impl ChunkStitch {
    /// A stitch for an answer of which `record` was delivered.
    pub(super) fn new(
        head: &Head,
        record: &Record,
        choice: fn(&mut Object, &mut Repetition) -> bool,
    ) -> Self {
        let (before, repetition) = (Before::of(record), Repetition::of(record));
        Self { head: head.clone(), before, repetition, over: false, choice }
    }

    /// Changes the choices; returns whether any chunk is left.
    fn choices(&mut self, chunk: &mut Object) -> bool {
        let Some(Value::Array(choices)) = chunk.get_mut("choices") else { return true };
        let had = !choices.is_empty();
        choices.retain_mut(|choice| match choice {
            Value::Object(choice) => (self.choice)(choice, &mut self.repetition),
            _ => false,
        });
        !had || !choices.is_empty() || chunk.get("usage").is_some_and(Value::is_object)
    }
}

impl Stitch for ChunkStitch {
    fn event(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.over || data.is_empty() {
            return Ok(());
        }
        if data.trim_ascii() == DONE {
            self.over = true;
            done(out);
            return Ok(());
        }
        let mut chunk = shape::object(data, json)?;
        if is_error(&chunk) {
            write(&chunk, out);
            return Ok(());
        }
        let is_first = self.head.0.is_none();
        if !is_first && !self.choices(&mut chunk) {
            return Ok(());
        }
        self.head.put_on(&mut chunk);
        // `timings` of the second part alone would be taken for those of the whole answer.
        chunk.remove("timings");
        if let Some(usage) = chunk.get_mut("usage").and_then(Value::as_object_mut) {
            self.before.add_to(usage, &CHAT);
        }
        write(&chunk, out);
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Whether a chunk is an error.
pub(super) fn is_error(chunk: &Object) -> bool {
    let is_something = |error: &Value| !matches!(error, Value::Null | Value::Bool(false));
    chunk.get("error").is_some_and(is_something)
        || chunk.get("object").is_some_and(|object| object == "error")
}

fn write(chunk: &Object, out: &mut Vec<u8>) {
    for piece in ["data: ", &json::write(chunk), "\n\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

fn done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: [DONE]\n\n");
}
