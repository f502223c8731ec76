//! Reads the answer of a Chat Completions provider.

use protocol::{
    failure::{BadAnswer, Failure},
    json::{JsonReader, lenient::Count},
};
use serde_json::value::RawValue;

use super::{
    chunk::{Choice, Completion, Message, ToolCall, Usage},
    parts::Parts,
    provider::{ClientAnswer, FromProvider, ProviderReader, not_understood},
    writer::{Finish, Outcome, Part, Writer},
};

/// Makes an answer in any client's shape from one of a Chat Completions provider.
///
/// A stream that ends with neither a finish reason nor `[DONE]` has been cut off: its client gets
/// an error.
pub type FromChat<W> = FromProvider<Reading, W>;

const DONE: &[u8] = b"[DONE]";

/// How far an answer has been read.
#[derive(Debug, Default)]
pub struct Reading {
    parts: Parts,
    /// Whether any delta has come.
    has_deltas: bool,
    finish: Option<Finish>,
    stop_sequence: Option<String>,
    usage: Usage,
}

impl ProviderReader for Reading {
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if data.trim_ascii() == DONE {
            self.finish.get_or_insert(Finish::Stop);
            return client.end(self);
        }
        let chunk = json.chunk(data).map_err(not_understood)?;
        if is_error(&chunk) {
            return client.fail(&Failure::read(data));
        }
        self.add(&chunk, client)
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let answer: Completion<'_> = json.whole(data).map_err(not_understood)?;
        if is_error(&answer) {
            return client.fail(&Failure::read(data));
        }
        if answer.choices.0.is_empty() {
            return client.fail_with("the backend's answer has no choices");
        }
        self.add(&answer, client)?;
        self.finish.get_or_insert(Finish::Stop);
        client.end(self)
    }

    fn outcome<W: Writer>(&mut self, client: &mut ClientAnswer<'_, W>) -> Option<Outcome> {
        let finish = self.finish?;
        client.begin();
        self.parts.end(client);
        let finish = match (finish, self.parts.calls() > 0) {
            (Finish::Stop, true) => Finish::ToolCalls,
            // Without calls in the answer, the client would wait to run calls that it never got.
            (Finish::ToolCalls, false) => Finish::Stop,
            (finish, _) => finish,
        };
        let stop_sequence = self.stop_sequence.take();
        Some(Outcome { finish, stop_sequence, usage: self.usage })
    }
}

impl Reading {
    fn add<W: Writer>(
        &mut self,
        chunk: &Completion<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        client.begin();
        // Only one answer was asked for. If a backend gives more, the first one counts.
        let first = chunk.choices.0.iter().find(|choice| choice.index.0.unwrap_or(0) == 0);
        let Some(choice) = first else { return Ok(()) };
        match (&choice.delta, &choice.message) {
            (Some(delta), _) => self.delta(delta, client)?,
            // After deltas, a message only repeats them.
            (None, Some(message)) if !self.has_deltas => self.message(message, client)?,
            _ => {}
        }
        self.note_finish(choice);
        Ok(())
    }

    fn delta<W: Writer>(
        &mut self,
        delta: &Message<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        self.has_deltas = true;
        self.text(delta, client)?;
        delta.tool_calls.0.iter().try_for_each(|piece| self.parts.call(piece, client))
    }

    /// Takes a whole message. Each entry of `tool_calls` is a call of its own, whatever its number
    /// and id.
    fn message<W: Writer>(
        &mut self,
        message: &Message<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        self.text(message, client)?;
        let mut calls = (0..).zip(&message.tool_calls.0);
        calls.try_for_each(|(number, call)| {
            let call = ToolCall { index: Count(Some(number)), ..call.clone() };
            self.parts.call(&call, client)
        })
    }

    fn text<W: Writer>(
        &mut self,
        message: &Message<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let sealed = &message.reasoning_details.1;
        if !sealed.is_empty() {
            client.writer.seal(sealed);
        }
        let parts = &mut self.parts;
        parts.text(Part::Reasoning, message.thoughts(), client)?;
        parts.text(Part::Text, &message.content.text, client)?;
        parts.text(Part::Refusal, &message.refusal, client)
    }

    fn note_finish(&mut self, choice: &Choice<'_>) {
        let stop = [&choice.stop_reason, &choice.matched_stop];
        if let Some(stop) = stop.into_iter().find(|stop| !stop.is_empty()) {
            self.stop_sequence = Some(stop.to_string());
        }
        self.finish = match &*choice.finish_reason {
            "" => self.finish,
            "length" => Some(Finish::Length),
            "tool_calls" | "function_call" => Some(Finish::ToolCalls),
            "content_filter" => Some(Finish::ContentFilter),
            _ => Some(Finish::Stop),
        };
    }
}

fn is_error(chunk: &Completion<'_>) -> bool {
    let bare = chunk.choices.0.is_empty() && !chunk.message.is_empty();
    let nothing = |error: &RawValue| matches!(error.get(), "\"\"" | "{}" | "[]" | "false");
    chunk.error.is_some_and(|error| !nothing(error)) || &*chunk.object == "error" || bare
}
