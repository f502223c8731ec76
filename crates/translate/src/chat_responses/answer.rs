//! Reads the answer of a Responses provider.

use std::collections::HashSet;

use protocol::{
    failure::{BadAnswer, Failure},
    json::{
        JsonReader,
        lenient::{Count, TextOrJson},
    },
};
use serde_json::value::RawValue;

use super::event::{Event, Item, Response};
use crate::chat::{
    Finish, Outcome, Part, Progress, ProviderReader, Usage, Writer,
    chunk::{Function, ToolCall},
    not_understood,
    parts::Parts,
};

pub(super) const MAX_ITEMS: usize = 4096;

/// The separator of two summaries of thoughts.
const BETWEEN: &str = "\n\n";

/// The progress of reading an answer.
///
/// Deltas are carried as they come. An item without deltas is carried when it is done. The whole
/// response is read only if nothing came before it: its positions may differ from those of events.
#[derive(Debug, Default)]
pub(super) struct Reading {
    progress: Progress,
    parts: Parts,
    /// The positions of items that were carried at least in part.
    told: HashSet<u64>,
}

impl ProviderReader for Reading {
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if self.progress.over || data.is_empty() || data == b"[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = json.chunk(data).map_err(not_understood)?;
        match &*event.kind {
            "error" => return self.progress.fail(&Failure::read(data), writer, out),
            "response.failed" => return self.progress.fail(&reason(event.response), writer, out),
            "response.completed" | "response.incomplete" => {
                let mut json = JsonReader::default();
                return self.response(&object(event.response, &mut json)?, writer, out);
            }
            _ => {}
        }
        self.progress.begin(writer, out);
        self.item_event(&event, writer, out)
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let mut json = JsonReader::default();
        let response: Response<'_> = json.whole(data).map_err(not_understood)?;
        if response.error.is_some() || &*response.status == "failed" {
            return self.progress.fail(&Failure::read(data), writer, out);
        }
        if response.output.is_none() {
            return self.progress.fail_with("the backend's answer has no output", writer, out);
        }
        self.response(&response, writer, out)
    }

    fn is_over(&self) -> bool {
        self.progress.over
    }

    fn end<W: Writer>(&mut self, writer: &mut W, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.progress.over {
            return Ok(());
        }
        self.progress.fail_with("the backend's answer was cut off", writer, out)
    }
}

impl Reading {
    fn item_event<W: Writer>(
        &mut self,
        event: &Event<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let place = event.output_index.0.unwrap_or(0);
        match &*event.kind {
            "response.output_item.added" => self.added(place, event, writer, out),
            "response.output_text.delta" => self.delta(Part::Text, event, writer, out),
            "response.refusal.delta" => self.delta(Part::Refusal, event, writer, out),
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.delta(Part::Reasoning, event, writer, out)
            }
            "response.reasoning_summary_part.added" if event.summary_index.0 > Some(0) => {
                self.parts.text(Part::Reasoning, BETWEEN, writer, out)
            }
            "response.function_call_arguments.delta" => {
                self.tell(place)?;
                self.call(place, &Item::default(), &event.delta, writer, out)
            }
            "response.output_item.done" => match &event.item {
                Some(item) => self.done(place, item, writer, out),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// A call begins with its name; other items begin with their first delta.
    fn added<W: Writer>(
        &mut self,
        place: u64,
        event: &Event<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        match &event.item {
            Some(item) if &*item.kind == "function_call" => {
                self.call(place, item, &TextOrJson::default(), writer, out)
            }
            _ => Ok(()),
        }
    }

    fn delta<W: Writer>(
        &mut self,
        part: Part,
        event: &Event<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.tell(event.output_index.0.unwrap_or(0))?;
        let text = event.delta.0.as_deref().unwrap_or_default();
        self.parts.text(part, text, writer, out)
    }

    /// An item is complete: carries it, unless its deltas were.
    fn done<W: Writer>(
        &mut self,
        place: u64,
        item: &Item<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        if !self.tell(place)? {
            return Ok(());
        }
        match &*item.kind {
            "function_call" => self.call(place, item, &item.arguments, writer, out),
            "message" => self.message(item, writer, out),
            "reasoning" => self.thoughts(item, writer, out),
            _ => Ok(()),
        }
    }

    fn message<W: Writer>(
        &mut self,
        item: &Item<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        item.content.0.iter().try_for_each(|piece| {
            self.parts.text(Part::Text, &piece.text, writer, out)?;
            self.parts.text(Part::Refusal, &piece.refusal, writer, out)
        })
    }

    /// The thoughts, or else their summaries.
    fn thoughts<W: Writer>(
        &mut self,
        item: &Item<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let texts = if item.content.0.is_empty() { &item.summary.0 } else { &item.content.0 };
        texts.iter().enumerate().try_for_each(|(at, piece)| {
            let between = if at == 0 { "" } else { BETWEEN };
            self.parts.text(Part::Reasoning, between, writer, out)?;
            self.parts.text(Part::Reasoning, &piece.text, writer, out)
        })
    }

    /// A call, or a piece of its arguments.
    fn call<W: Writer>(
        &mut self,
        place: u64,
        item: &Item<'_>,
        arguments: &TextOrJson<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        let function = Function { name: item.name.clone(), arguments: arguments.clone() };
        let piece = ToolCall {
            index: Count(Some(place)),
            id: item.call_id.clone(),
            function,
            ..ToolCall::default()
        };
        self.parts.call(&piece, writer, out)
    }

    /// Notes that something of an item is carried; returns whether it is the first of it.
    fn tell(&mut self, place: u64) -> Result<bool, BadAnswer> {
        let first = self.told.insert(place);
        if self.told.len() > MAX_ITEMS {
            return Err(BadAnswer(format!("the answer has more than {MAX_ITEMS} items")));
        }
        Ok(first)
    }

    /// The response is there as a whole.
    fn response<W: Writer>(
        &mut self,
        response: &Response<'_>,
        writer: &mut W,
        out: &mut Vec<u8>,
    ) -> Result<(), BadAnswer> {
        self.progress.begin(writer, out);
        if self.told.is_empty() {
            let mut items = (0..).zip(response.output.iter().flat_map(|output| &output.0));
            items.try_for_each(|(place, item)| self.done(place, item, writer, out))?;
        }
        self.progress.over = true;
        self.parts.end(writer, out);
        let usage = response.usage.map(Usage::from).unwrap_or_default();
        let finish = self.finish(response);
        writer.finish(&Outcome { finish, stop_sequence: None, usage }, out)
    }

    fn finish(&self, response: &Response<'_>) -> Finish {
        let incomplete = &*response.status == "incomplete";
        match response.incomplete_details.as_ref().map(|details| &*details.reason) {
            Some("content_filter") => Finish::ContentFilter,
            _ if incomplete => Finish::Length,
            _ if self.parts.calls() > 0 => Finish::ToolCalls,
            _ => Finish::Stop,
        }
    }
}

fn object<'a>(
    raw: Option<&'a RawValue>,
    json: &'a mut JsonReader,
) -> Result<Response<'a>, BadAnswer> {
    let Some(raw) = raw else { return Ok(Response::default()) };
    json.whole(raw.get().as_bytes()).map_err(not_understood)
}

fn reason(response: Option<&RawValue>) -> Failure {
    response.map_or_else(
        || Failure::new("the backend gave no reason"),
        |raw| Failure::read(raw.get().as_bytes()),
    )
}
