//! Reads the answer of a legacy Completions provider.

use protocol::{
    failure::{BadAnswer, Failure},
    json::{
        JsonReader,
        lenient::{List, Text},
    },
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::{
    Finish, Outcome, Part, Progress, ProviderReader, Usage, Writer, not_understood, parts::Parts,
};

/// How far an answer has been read.
#[derive(Debug, Default)]
pub(super) struct TextReading {
    progress: Progress,
    parts: Parts,
    finish: Option<Finish>,
    usage: Usage,
}

/// A chunk of a stream, or a whole answer: they have the same form.
#[derive(Debug, Default, Deserialize)]
struct Completion<'a> {
    #[serde(borrow, default)]
    choices: List<Choice<'a>>,
    usage: Option<Usage>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

impl ProviderReader for TextReading {
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.progress.over || data.is_empty() {
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            self.finish.get_or_insert(Finish::Stop);
            return self.end(writer, out);
        }
        let chunk: Completion<'_> = json.chunk(data).map_err(not_understood)?;
        self.add(&chunk, data, writer, out)
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let mut json = JsonReader::default();
        let answer: Completion<'_> = json.whole(data).map_err(not_understood)?;
        if answer.error.is_none() && answer.choices.0.is_empty() {
            return self.progress.fail_with("the backend's answer has no choices", writer, out);
        }
        self.add(&answer, data, writer, out)?;
        self.finish.get_or_insert(Finish::Stop);
        self.end(writer, out)
    }

    fn is_over(&self) -> bool {
        self.progress.over
    }

    fn end<W: Writer>(&mut self, writer: &mut W, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.progress.over {
            return Ok(());
        }
        let Some(finish) = self.finish else {
            return self.progress.fail_with("the backend's answer was cut off", writer, out);
        };
        self.progress.begin(writer, out);
        self.progress.over = true;
        self.parts.end(writer, out);
        writer.finish(&Outcome { finish, stop_sequence: None, usage: self.usage }, out)
    }
}

impl TextReading {
    fn add<W: Writer>(
        &mut self,
        chunk: &Completion<'_>,
        data: &[u8],
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if chunk.error.is_some() {
            return self.progress.fail(&Failure::read(data), writer, out);
        }
        self.usage = chunk.usage.unwrap_or(self.usage);
        self.progress.begin(writer, out);
        let Some(choice) = chunk.choices.0.first() else { return Ok(()) };
        self.finish = match &*choice.finish_reason {
            "" => self.finish,
            "length" => Some(Finish::Length),
            _ => Some(Finish::Stop),
        };
        self.parts.text(Part::Text, &choice.text, writer, out)
    }
}
