//! Reads the answer of a Chat Completions provider.

use protocol::{
    failure::{BadAnswer, Failure},
    json::{JsonReader, lenient::Count},
};
use serde_json::value::RawValue;

use super::{
    chunk::{Choice, Completion, Message, ToolCall, Usage},
    parts::Parts,
    provider::{FromProvider, Progress, ProviderReader, not_understood},
    writer::{Finish, Outcome, Part, Writer},
};

/// Makes the answer of any client's shape of one of a Chat Completions provider.
///
/// A stream that ends with neither a finish reason nor `[DONE]` has been cut off: its client gets
/// an error.
pub type FromChat<W> = FromProvider<Reading, W>;

const DONE: &[u8] = b"[DONE]";

/// How far an answer has been read.
#[derive(Debug, Default)]
pub struct Reading {
    progress: Progress,
    parts: Parts,
    /// Whether there has been a delta.
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
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.progress.over || data.is_empty() {
            return Ok(());
        }
        if data.trim_ascii() == DONE {
            self.finish.get_or_insert(Finish::Stop);
            return self.end(writer, out);
        }
        let chunk = json.chunk(data).map_err(not_understood)?;
        if is_error(&chunk) {
            return self.progress.fail(&Failure::read(data), writer, out);
        }
        self.add(&chunk, writer, out)
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let mut json = JsonReader::default();
        let answer: Completion<'_> = json.whole(data).map_err(not_understood)?;
        if is_error(&answer) {
            return self.progress.fail(&Failure::read(data), writer, out);
        }
        if answer.choices.0.is_empty() {
            return self.progress.fail_with("the backend's answer has no choices", writer, out);
        }
        self.add(&answer, writer, out)?;
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
        let finish = match (finish, self.parts.calls() > 0) {
            (Finish::Stop, true) => Finish::ToolCalls,
            // A client would wait for the results of calls that it never got.
            (Finish::ToolCalls, false) => Finish::Stop,
            (finish, _) => finish,
        };
        let stop_sequence = self.stop_sequence.take();
        writer.finish(&Outcome { finish, stop_sequence, usage: self.usage }, out)
    }
}

impl Reading {
    fn add<W: Writer>(
        &mut self,
        chunk: &Completion<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if let Some(usage) = chunk.usage {
            self.usage = usage;
        }
        self.progress.begin(writer, out);
        // One answer is asked for; a backend that gives more is read as if it gave the first.
        let first = chunk.choices.0.iter().find(|choice| choice.index.0.unwrap_or(0) == 0);
        let Some(choice) = first else { return Ok(()) };
        match (&choice.delta, &choice.message) {
            (Some(delta), _) => self.delta(delta, writer, out)?,
            // Once there were deltas, this is all of them again.
            (None, Some(message)) if !self.has_deltas => self.message(message, writer, out)?,
            _ => {}
        }
        self.note_finish(choice);
        Ok(())
    }

    fn delta<W: Writer>(
        &mut self,
        delta: &Message<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.has_deltas = true;
        self.text(delta, writer, out)?;
        delta.tool_calls.0.iter().try_for_each(|piece| self.parts.call(piece, writer, out))
    }

    /// A whole message. Each of its calls is one of its own, whatever their numbers and ids.
    fn message<W: Writer>(
        &mut self,
        message: &Message<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.text(message, writer, out)?;
        let mut calls = (0..).zip(&message.tool_calls.0);
        calls.try_for_each(|(number, call)| {
            let call = ToolCall { index: Count(Some(number)), ..call.clone() };
            self.parts.call(&call, writer, out)
        })
    }

    fn text<W: Writer>(
        &mut self,
        message: &Message<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let sealed = &message.reasoning_details.1;
        if !sealed.is_empty() {
            writer.seal(sealed);
        }
        let parts = &mut self.parts;
        parts.text(Part::Reasoning, message.thoughts(), writer, out)?;
        parts.text(Part::Text, &message.content.text, writer, out)?;
        parts.text(Part::Refusal, &message.refusal, writer, out)
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
