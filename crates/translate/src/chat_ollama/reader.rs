//! Reads the answer of an Ollama: one object, or a stream with one object on each line.

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
    ClientAnswer, Finish, Outcome, Part, ProviderReader, Usage, Writer, chunk::ToolCall,
    not_understood, parts::Parts,
};

/// How far an answer has been read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
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
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if data.trim_ascii().is_empty() {
            return Ok(());
        }
        let line: Line<'_> = json.chunk(data).map_err(not_understood)?;
        if line.error.is_some() {
            return client.fail(&Failure::read(data));
        }
        self.add(&line, client)?;
        if line.done { client.end(self) } else { Ok(()) }
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        for line in data.split(|byte| *byte == b'\n') {
            client.read(self, line, json)?;
        }
        client.end(self)
    }

    fn outcome<W: Writer>(&mut self, client: &mut ClientAnswer<'_, W>) -> Option<Outcome> {
        let (finish, usage) = self.end?;
        client.begin();
        self.parts.end(client);
        let finish = if self.parts.calls() > 0 && finish == Finish::Stop {
            Finish::ToolCalls
        } else {
            finish
        };
        Some(Outcome { finish, stop_sequence: None, usage })
    }
}

impl Reading {
    fn add<W: Writer>(
        &mut self,
        line: &Line<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        client.begin();
        let Message { content, thinking, tool_calls } = &line.message;
        self.parts.text(Part::Reasoning, thinking, client)?;
        self.parts.text(Part::Text, content, client)?;
        for call in &tool_calls.0 {
            self.call(call, client)?;
        }
        if line.done {
            self.end = Some((finish(&line.done_reason), usage(line)));
        }
        Ok(())
    }

    /// Takes a call, which always comes whole. Numbers may repeat between lines, so it gets a new
    /// one.
    fn call<W: Writer>(
        &mut self,
        call: &ToolCall<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let mut call = ToolCall { index: Count(Some(self.calls)), ..call.clone() };
        self.calls += 1;
        call.function.arguments.0.get_or_insert(Cow::Borrowed("{}"));
        self.parts.call(&call, client)
    }
}

fn finish(reason: &str) -> Finish {
    if reason == "length" { Finish::Length } else { Finish::Stop }
}

fn usage(line: &Line<'_>) -> Usage {
    let (prompt_tokens, completion_tokens) = (line.prompt_eval_count, line.eval_count);
    Usage { prompt_tokens, completion_tokens, ..Usage::default() }
}
