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
    ClientAnswer, Finish, Outcome, Part, ProviderReader, Usage, Writer,
    chunk::{Function, ToolCall},
    not_understood,
    parts::Parts,
};

pub(super) const MAX_ITEMS: usize = 4096;

/// The separator of two summaries of thoughts.
const BETWEEN: &str = "\n\n";

/// The progress of reading an answer.
///
/// Deltas are carried over as they come. An item without deltas is carried over when it is done.
/// The output of the final response is read only if no item came before it, since its positions may
/// differ from those in events.
#[derive(Debug, Default)]
pub(super) struct Reading {
    parts: Parts,
    /// The positions of items that were carried over at least in part.
    carried: HashSet<u64>,
}

impl ProviderReader for Reading {
    fn event<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if data == b"[DONE]" {
            return Ok(());
        }
        let event: Event<'_> = json.chunk(data).map_err(not_understood)?;
        match &*event.kind {
            "error" => return client.fail(&Failure::read(data)),
            "response.failed" => return client.fail(&reason(event.response)),
            "response.completed" | "response.incomplete" => {
                let mut json = JsonReader::default();
                return self.response(&object(event.response, &mut json)?, client);
            }
            _ => {}
        }
        client.begin();
        self.item_event(&event, client)
    }

    fn whole<W: Writer>(
        &mut self,
        data: &[u8],
        json: &mut JsonReader,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let response: Response<'_> = json.whole(data).map_err(not_understood)?;
        if response.error.is_some() || &*response.status == "failed" {
            return client.fail(&Failure::read(data));
        }
        if response.output.is_none() {
            return client.fail_with("the backend's answer has no output");
        }
        self.response(&response, client)
    }

    /// `None`: only the final event ends an answer, and it does so by itself.
    fn outcome<W: Writer>(&mut self, _: &mut ClientAnswer<'_, W>) -> Option<Outcome> {
        None
    }
}

impl Reading {
    fn item_event<W: Writer>(
        &mut self,
        event: &Event<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let position = event.output_index.0.unwrap_or(0);
        match &*event.kind {
            "response.output_item.added" => self.added(position, event, client),
            "response.output_text.delta" => self.delta(Part::Text, event, client),
            "response.refusal.delta" => self.delta(Part::Refusal, event, client),
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
                self.delta(Part::Reasoning, event, client)
            }
            "response.reasoning_summary_part.added" if event.summary_index.0 > Some(0) => {
                self.parts.text(Part::Reasoning, BETWEEN, client)
            }
            "response.function_call_arguments.delta" => {
                self.carry(position)?;
                self.call(position, &Item::default(), &event.delta, client)
            }
            "response.output_item.done" => match &event.item {
                Some(item) => self.done(position, item, client),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// A call begins with its name; other items begin with their first delta.
    fn added<W: Writer>(
        &mut self,
        position: u64,
        event: &Event<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        match &event.item {
            Some(item) if &*item.kind == "function_call" => {
                self.call(position, item, &TextOrJson::default(), client)
            }
            _ => Ok(()),
        }
    }

    fn delta<W: Writer>(
        &mut self,
        part: Part,
        event: &Event<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        self.carry(event.output_index.0.unwrap_or(0))?;
        let text = event.delta.0.as_deref().unwrap_or_default();
        self.parts.text(part, text, client)
    }

    /// Takes a complete item, and carries it over unless its deltas were carried over.
    fn done<W: Writer>(
        &mut self,
        position: u64,
        item: &Item<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        if !self.carry(position)? {
            return Ok(());
        }
        match &*item.kind {
            "function_call" => self.call(position, item, &item.arguments, client),
            "message" => self.message(item, client),
            "reasoning" => self.thoughts(item, client),
            _ => Ok(()),
        }
    }

    fn message<W: Writer>(
        &mut self,
        item: &Item<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        item.content.0.iter().try_for_each(|piece| {
            self.parts.text(Part::Text, &piece.text, client)?;
            self.parts.text(Part::Refusal, &piece.refusal, client)
        })
    }

    /// The thoughts, or else their summaries.
    fn thoughts<W: Writer>(
        &mut self,
        item: &Item<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let texts = if item.content.0.is_empty() { &item.summary.0 } else { &item.content.0 };
        texts.iter().enumerate().try_for_each(|(at, piece)| {
            let between = if at == 0 { "" } else { BETWEEN };
            self.parts.text(Part::Reasoning, between, client)?;
            self.parts.text(Part::Reasoning, &piece.text, client)
        })
    }

    /// A call, or a piece of its arguments.
    fn call<W: Writer>(
        &mut self,
        position: u64,
        item: &Item<'_>,
        arguments: &TextOrJson<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        let function = Function { name: item.name.clone(), arguments: arguments.clone() };
        let piece = ToolCall {
            index: Count(Some(position)),
            id: item.call_id.clone(),
            function,
            ..ToolCall::default()
        };
        self.parts.call(&piece, client)
    }

    /// Notes that a piece of an item is carried over. Returns whether it is the item's first piece.
    fn carry(&mut self, position: u64) -> Result<bool, BadAnswer> {
        let first = self.carried.insert(position);
        if self.carried.len() > MAX_ITEMS {
            return Err(BadAnswer(format!("the answer has more than {MAX_ITEMS} items")));
        }
        Ok(first)
    }

    /// Takes the final response, and ends the answer.
    fn response<W: Writer>(
        &mut self,
        response: &Response<'_>,
        client: &mut ClientAnswer<'_, W>,
    ) -> Result<(), BadAnswer> {
        client.begin();
        if self.carried.is_empty() {
            let mut items = (0..).zip(response.output.iter().flat_map(|output| &output.0));
            items.try_for_each(|(position, item)| self.done(position, item, client))?;
        }
        self.parts.end(client);
        let usage = response.usage.map(Usage::from).unwrap_or_default();
        let finish = self.finish(response);
        client.finish(&Outcome { finish, stop_sequence: None, usage })
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
