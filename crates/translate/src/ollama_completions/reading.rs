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
    ClientAnswer, Finish, Outcome, Part, ProviderReader, Usage, Writer, not_understood,
    parts::Parts,
};

/// How far an answer has been read.
#[derive(Debug, Default)]
pub(super) struct TextReading {
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
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if data.trim_ascii() == b"[DONE]" {
            self.finish.get_or_insert(Finish::Stop);
            return client.end(self);
        }
        let chunk: Completion<'_> = json.chunk(data).map_err(not_understood)?;
        self.add(&chunk, data, client)
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let answer: Completion<'_> = json.whole(data).map_err(not_understood)?;
        if answer.error.is_none() && answer.choices.0.is_empty() {
            return client.fail_with("the backend's answer has no choices");
        }
        self.add(&answer, data, client)?;
        self.finish.get_or_insert(Finish::Stop);
        client.end(self)
    }

    fn outcome<W: Writer>(&mut self, client: &mut ClientAnswer<'_, W>) -> Option<Outcome> {
        let finish = self.finish?;
        client.begin();
        self.parts.end(client);
        Some(Outcome { finish, stop_sequence: None, usage: self.usage })
    }
}

impl TextReading {
    fn add<W: Writer>(
        &mut self,
        chunk: &Completion<'_>,
        data: &[u8],
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if chunk.error.is_some() {
            return client.fail(&Failure::read(data));
        }
        self.usage = chunk.usage.unwrap_or(self.usage);
        client.begin();
        let Some(choice) = chunk.choices.0.first() else { return Ok(()) };
        self.finish = match &*choice.finish_reason {
            "" => self.finish,
            "length" => Some(Finish::Length),
            _ => Some(Finish::Stop),
        };
        self.parts.text(Part::Text, &choice.text, client)
    }
}
