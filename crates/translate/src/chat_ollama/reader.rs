//! Reads the answer of an Ollama: one object, or one a line.

use std::borrow::Cow;

use protocol::{
    failure::{BadAnswer, Failure},
    json::{
        JsonReader,
        lenient::{Count, List, Text, or_default},
    },
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chat::{
    Finish, Outcome, Part, Progress, ProviderReader, Usage, Writer, chunk::ToolCall,
    not_understood, parts::Parts,
};

/// How far an answer has been read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    progress: Progress,
    parts: Parts,
    calls: u64,
    end: Option<(Finish, Usage)>,
}

#[derive(Debug, Default, Deserialize)]
struct Line<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    message: Message<'a>,
    #[serde(default, deserialize_with = "or_default")]
    done: bool,
    #[serde(borrow, default)]
    done_reason: Text<'a>,
    #[serde(default)]
    prompt_eval_count: Count,
    #[serde(default)]
    eval_count: Count,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    tool_calls: List<ToolCall<'a>>,
}

impl ProviderReader for Reading {
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.progress.over || data.trim_ascii().is_empty() {
            return Ok(());
        }
        let line: Line<'_> = json.chunk(data).map_err(not_understood)?;
        if line.error.is_some() {
            return self.progress.fail(&Failure::read(data), writer, out);
        }
        self.add(&line, writer, out)?;
        if line.done { self.end(writer, out) } else { Ok(()) }
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let mut json = JsonReader::default();
        for line in data.split(|byte| *byte == b'\n') {
            self.event(line, &mut json, writer, out)?;
        }
        self.end(writer, out)
    }

    fn is_over(&self) -> bool {
        self.progress.over
    }

    fn end<W: Writer>(&mut self, writer: &mut W, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.progress.over {
            return Ok(());
        }
        let Some((finish, usage)) = self.end else {
            return self.progress.fail_with("the backend's answer was cut off", writer, out);
        };
        self.progress.begin(writer, out);
        self.progress.over = true;
        self.parts.end(writer, out);
        let finish = if self.parts.calls() > 0 && finish == Finish::Stop {
            Finish::ToolCalls
        } else {
            finish
        };
        writer.finish(&Outcome { finish, stop_sequence: None, usage }, out)
    }
}

impl Reading {
    fn add<W: Writer>(
        &mut self,
        line: &Line<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.progress.begin(writer, out);
        let Message { content, thinking, tool_calls } = &line.message;
        self.parts.text(Part::Reasoning, thinking, writer, out)?;
        self.parts.text(Part::Text, content, writer, out)?;
        for call in &tool_calls.0 {
            self.call(call, writer, out)?;
        }
        if line.done {
            self.end = Some((finish(&line.done_reason), usage(line)));
        }
        Ok(())
    }

    /// A call comes whole; its number may be that of another line's.
    fn call<W: Writer>(
        &mut self,
        call: &ToolCall<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let mut call = ToolCall { index: Count(Some(self.calls)), ..call.clone() };
        self.calls += 1;
        call.function.arguments.0.get_or_insert(Cow::Borrowed("{}"));
        self.parts.call(&call, writer, out)
    }
}

fn finish(reason: &str) -> Finish {
    if reason == "length" { Finish::Length } else { Finish::Stop }
}

fn usage(line: &Line<'_>) -> Usage {
    let (prompt_tokens, completion_tokens) = (line.prompt_eval_count, line.eval_count);
    Usage { prompt_tokens, completion_tokens, ..Usage::default() }
}
