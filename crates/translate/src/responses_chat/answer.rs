//! The `response` object and its events.

use std::fmt::Write as _;

use protocol::{
    failure::{BadAnswer, Failure, MAX_KEPT},
    json,
};
use serde::Serialize;

use super::{
    echo::Echo,
    item::{Item, Status},
};
use crate::{
    Context,
    answer::Body,
    chat::{Finish, Outcome, Part, Usage, Writer, chunk::PromptTokens},
    errors,
};

/// Writes a response, as a stream of events or as one object.
///
/// It holds its texts until the end, since the last event repeats them: at most [`MAX_KEPT`] bytes,
/// above which the response fails.
#[derive(Debug)]
pub(super) struct Response {
    echo: Echo,
    answer: String,
    streaming: bool,
    /// The complete items, as JSON with commas between them.
    output: String,
    items: usize,
    open: Option<Item>,
    /// The beginning of a delta of the open item, up to its sequence number.
    prefix: String,
    sequence: u64,
    text_bytes: usize,
    /// All its text in one piece. An answer that is one object repeats it, because some clients
    /// expect that.
    text: String,
    /// Whether the last event was written.
    over: bool,
    line: String,
}

impl Response {
    /// A response of which nothing was written yet. `request` is the client's own body.
    pub(super) fn new(context: &Context, request: &[u8]) -> Self {
        Self {
            echo: Echo::of(context, request),
            answer: context.id.clone(),
            streaming: context.streaming,
            output: String::new(),
            items: 0,
            open: None,
            prefix: String::new(),
            sequence: 0,
            text_bytes: 0,
            text: String::new(),
            over: false,
            line: String::new(),
        }
    }

    /// Writes an event. `fields` is JSON without braces.
    fn event(&mut self, kind: &str, fields: &str, out: &mut Vec<u8>) {
        if !self.streaming {
            return;
        }
        let sequence = self.sequence;
        self.line.clear();
        // Writing to a string cannot fail.
        let _ = write!(
            self.line,
            "event: {kind}\ndata: {{\"type\":\"{kind}\",\
             \"sequence_number\":{sequence},{fields}}}\n\n"
        );
        self.sequence += 1;
        out.extend_from_slice(self.line.as_bytes());
    }

    fn item_event(&mut self, kind: &str, item: &Item, status: Status, out: &mut Vec<u8>) {
        let fields = format!(r#""output_index":{},"item":{}"#, item.index, item.json(status));
        self.event(kind, &fields, out);
    }

    fn part_event(&mut self, kind: &str, item: &Item, with_text: bool, out: &mut Vec<u8>) {
        let Some(part) = item.part_json(with_text) else { return };
        let (id, index) = (&item.id, item.index);
        let fields =
            format!(r#""item_id":"{id}","output_index":{index},"content_index":0,"part":{part}"#);
        self.event(kind, &fields, out);
    }

    fn text_delta(&mut self, text: &str, out: &mut Vec<u8>) {
        if !self.streaming {
            return;
        }
        self.line.clear();
        self.line.push_str(&self.prefix);
        let _ = write!(self.line, "{},\"delta\":\"", self.sequence);
        json::push_escaped(&mut self.line, text);
        self.line.push_str("\"}\n\n");
        self.sequence += 1;
        out.extend_from_slice(self.line.as_bytes());
    }

    /// Completes the open item.
    fn complete(&mut self, status: Status, out: &mut Vec<u8>) {
        let Some(mut item) = self.open.take() else { return };
        self.complete_text(&mut item, out);
        let events = item.events();
        let fields = format!(
            r#""item_id":"{}","output_index":{}{},"{}":{}"#,
            item.id,
            item.index,
            events.more,
            events.field,
            json::write(&item.text),
        );
        self.event(events.done, &fields, out);
        self.part_event("response.content_part.done", &item, true, out);
        self.item_event("response.output_item.done", &item, status, out);
        self.gather(&item, status);
    }

    /// Writes the text that could not be sent before the item was complete.
    fn complete_text(&mut self, item: &mut Item, out: &mut Vec<u8>) {
        if item.is_custom() {
            item.decode_input();
            if !item.text.is_empty() {
                self.text_delta(&item.text, out);
            }
        }
        let missing = item.missing();
        if !missing.is_empty() {
            item.text = missing.to_owned();
            self.text_delta(missing, out);
        }
    }

    fn gather(&mut self, item: &Item, status: Status) {
        if self.items > 0 {
            self.output.push(',');
        }
        self.output.push_str(&item.json(status));
        if !self.streaming && item.is_text() {
            self.text.push_str(&item.text);
        }
        self.items += 1;
    }

    /// The response object with this status. `more` is JSON with the fields that go with the
    /// status.
    fn object(&self, status: &str, more: &str) -> String {
        let (fields, output) = (&self.echo.fields, &self.output);
        format!(r#"{fields},"status":"{status}","output":[{output}],{more}}}"#)
    }

    fn state_event(&mut self, kind: &str, status: &str, more: &str, out: &mut Vec<u8>) {
        if self.streaming {
            let fields = format!("\"response\":{}", self.object(status, more));
            self.event(kind, &fields, out);
        }
    }

    /// Ends a failed response. The open item stays open.
    fn failed(&mut self, code: &str, message: &str, out: &mut Vec<u8>) {
        self.over = true;
        let error = json::write(&Error { code, message });
        let more = format!(r#""error":{error},"incomplete_details":null,"usage":null"#);
        self.state_event("response.failed", "failed", &more, out);
    }
}

impl Writer for Response {
    fn body(&self) -> Body {
        if self.streaming { Body::Events } else { Body::Json }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        let nothing = r#""error":null,"incomplete_details":null,"usage":null"#;
        for kind in ["response.created", "response.in_progress"] {
            self.state_event(kind, "in_progress", nothing, out);
        }
    }

    fn open(&mut self, part: &Part, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        self.complete(Status::Completed, out);
        let item = Item::of(part, self.items, &self.answer, &self.echo.names);
        self.item_event("response.output_item.added", &item, Status::InProgress, out);
        self.part_event("response.content_part.added", &item, false, out);
        let events = item.events();
        self.prefix = format!(
            "event: {0}\ndata: {{\"type\":\"{0}\",\"item_id\":\"{1}\",\"output_index\":{2}{3},\
             \"sequence_number\":",
            events.delta, item.id, item.index, events.more,
        );
        self.open = Some(item);
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        let Some(item) = self.open.as_mut().filter(|_| !self.over) else { return };
        self.text_bytes += text.len();
        if self.text_bytes > MAX_KEPT {
            let message = format!("the answer is longer than {MAX_KEPT} bytes");
            return self.failed("server_error", &message, out);
        }
        item.text.push_str(text);
        if !item.is_custom() {
            self.text_delta(text, out);
        }
    }

    /// Does nothing: an item is completed when another one follows, or with the response. Only then
    /// is it known whether a limit ended it.
    fn close(&mut self, _: &mut Vec<u8>) {}

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if self.over {
            // In a stream, the client already has this error.
            let too_long = BadAnswer(format!("the answer is longer than {MAX_KEPT} bytes"));
            return if self.streaming { Ok(()) } else { Err(too_long) };
        }
        let (kind, status, item, reason) = ending(outcome.finish);
        self.complete(item, out);
        self.over = true;
        let usage = json::write(&ResponseUsage::of(&outcome.usage));
        let more = format!(r#""error":null,"incomplete_details":{reason},"usage":{usage}"#);
        if self.streaming {
            self.state_event(kind, status, &more, out);
        } else {
            let more = format!(r#"{more},"output_text":{}"#, json::write(&self.text));
            out.extend_from_slice(self.object(status, &more).as_bytes());
        }
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        if self.over {
            return;
        }
        if self.sequence == 0 {
            self.begin(out);
        }
        self.failed(errors::response_code(failure), &failure.message, out);
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::body(status, failure).as_bytes());
    }
}

/// The last event, the status of the response and of its last item, and `incomplete_details`.
fn ending(finish: Finish) -> (&'static str, &'static str, Status, &'static str) {
    let incomplete = |reason| ("response.incomplete", "incomplete", Status::Incomplete, reason);
    match finish {
        Finish::Stop | Finish::ToolCalls => {
            ("response.completed", "completed", Status::Completed, "null")
        }
        Finish::Length => incomplete(r#"{"reason":"max_output_tokens"}"#),
        Finish::ContentFilter => incomplete(r#"{"reason":"content_filter"}"#),
    }
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
}

/// `usage`. Missing counts are 0, since clients need the fields.
#[derive(Serialize)]
struct ResponseUsage {
    input_tokens: u64,
    input_tokens_details: InputDetails,
    output_tokens: u64,
    output_tokens_details: OutputDetails,
    total_tokens: u64,
}

#[derive(Serialize)]
struct InputDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
}

#[derive(Serialize)]
struct OutputDetails {
    reasoning_tokens: u64,
}

impl ResponseUsage {
    fn of(usage: &Usage) -> Self {
        let PromptTokens { all: input_tokens, cached: cached_tokens, written } = usage.prompt();
        let output_tokens = usage.completion();
        let thought = usage.completion_tokens_details.reasoning_tokens.0.unwrap_or(0);
        Self {
            input_tokens,
            input_tokens_details: InputDetails { cached_tokens, cache_write_tokens: written },
            output_tokens,
            output_tokens_details: OutputDetails { reasoning_tokens: thought.min(output_tokens) },
            total_tokens: input_tokens.saturating_add(output_tokens),
        }
    }
}
