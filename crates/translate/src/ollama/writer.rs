//! Writes an answer of chat or generate, as lines or as one object.

use std::time::Duration;

use protocol::{
    failure::{BadAnswer, Failure, MAX_KEPT},
    json::{self, mended},
    ollama::reply::{error_body, error_line},
};
use serde_json::value::RawValue;

use super::{
    clock::Clock,
    line::{self, Call, End, Form, Function, Said},
    settings::shows_thoughts,
};
use crate::{
    Context,
    answer::Body,
    chat::{Finish, Outcome, Part, Writer},
};

/// Writes an answer of chat or generate.
#[derive(Debug)]
pub(crate) struct OllamaWriter {
    form: Form,
    streaming: bool,
    shows_thoughts: bool,
    /// The beginning of every object, up to the quote before its time.
    prefix: String,
    clock: Clock,
    /// The answer's id, from which ids of calls without one are made.
    context_id: String,
    part: Option<Part>,
    /// The arguments of the open call.
    arguments: String,
    /// The text of an answer that is one object.
    text: String,
    thinking: String,
    calls: Vec<Call>,
    /// The fault of the first call whose arguments are not an object.
    fault: Option<BadAnswer>,
    line: String,
}

impl OllamaWriter {
    /// A writer that has written nothing yet. `request` is the client's own body.
    pub(crate) fn new(form: Form, context: &Context, request: &[u8]) -> Self {
        let model = json::write(&context.model);
        Self {
            form,
            streaming: context.streaming,
            shows_thoughts: shows_thoughts(request),
            prefix: format!(r#"{{"model":{model},"created_at":""#),
            clock: Clock::new(context.created),
            context_id: context.id.clone(),
            part: None,
            arguments: String::new(),
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            fault: None,
            line: String::new(),
        }
    }

    /// Writes a line of a stream.
    fn line(&mut self, said: &Said<'_>, ended: Option<&End>, out: &mut Vec<u8>) {
        self.line.clear();
        let now = self.clock.now();
        line::push(&mut self.line, &self.prefix, self.form, &now, said, ended);
        self.line.push('\n');
        out.extend_from_slice(self.line.as_bytes());
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.streaming {
            self.line(&Said { text, ..Said::default() }, None, out);
        } else {
            self.text.push_str(text);
        }
    }

    fn thought(&mut self, thinking: &str, out: &mut Vec<u8>) {
        match (self.shows_thoughts, self.streaming) {
            (false, _) => {}
            (true, true) => self.line(&Said { thinking, ..Said::default() }, None, out),
            (true, false) => self.thinking.push_str(thinking),
        }
    }

    fn call(&mut self, id: String, name: String, number: usize, out: &mut Vec<u8>) {
        let Some(arguments) = object(&self.arguments) else {
            let name = json::clip(&name, 64);
            let why = format!("the arguments of the call of {name} are no JSON object");
            self.fault.get_or_insert(BadAnswer(why));
            return;
        };
        let id = if id.is_empty() { format!("call_{}_{number}", self.context_id) } else { id };
        let call = Call { id, function: Function { index: number, name, arguments } };
        if self.streaming {
            self.line(&Said { calls: &[call], ..Said::default() }, None, out);
        } else {
            self.calls.push(call);
        }
    }

    fn whole(&mut self, ended: &End, out: &mut Vec<u8>) {
        let said = Said { text: &self.text, thinking: &self.thinking, calls: &self.calls };
        let now = self.clock.now();
        self.line.clear();
        line::push(&mut self.line, &self.prefix, self.form, &now, &said, Some(ended));
        out.extend_from_slice(self.line.as_bytes());
    }
}

/// Arguments as an object; empty arguments become `{}`. `None` if they are not an object.
fn object(arguments: &str) -> Option<Box<RawValue>> {
    let given = if arguments.trim().is_empty() { "{}" } else { arguments.trim() };
    if !given.starts_with('{') {
        return None;
    }
    let whole = serde_json::from_str(given).ok();
    whole.or_else(|| RawValue::from_string(mended(given.as_bytes())?).ok())
}

impl Writer for OllamaWriter {
    fn body(&self) -> Body {
        if self.streaming { Body::NdJson } else { Body::Json }
    }

    fn provider_body(&mut self, body: Body) {
        if body != Body::Events {
            self.clock.comes_whole();
        }
    }

    fn passed(&mut self, since: Duration) {
        self.clock.passed(since);
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.clock.piece();
        self.arguments.clear();
        self.part = Some(part.clone());
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        match &self.part {
            Some(Part::Text | Part::Refusal) => self.text(text, out),
            Some(Part::Reasoning) => self.thought(text, out),
            Some(Part::Call { .. }) if self.arguments.len() + text.len() > MAX_KEPT => {
                let why = format!("the arguments of a call are longer than {MAX_KEPT} bytes");
                self.fault.get_or_insert(BadAnswer(why));
            }
            Some(Part::Call { .. }) => self.arguments.push_str(text),
            None => {}
        }
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(Part::Call { id, name, number }) = self.part.take() {
            // An answer of generate cannot hold calls. Its requests never offer tools.
            if self.form == Form::Chat {
                self.call(id, name, number, out);
            }
        }
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let reason = match outcome.finish {
            Finish::Length => "length",
            Finish::Stop | Finish::ToolCalls | Finish::ContentFilter => "stop",
        };
        let ended = End::new(reason, &self.clock.durations(), &outcome.usage);
        if self.streaming {
            self.line(&Said::default(), Some(&ended), out);
        } else {
            self.whole(&ended, out);
        }
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(error_line(&failure.message).as_bytes());
    }

    fn refuse(&mut self, _: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(error_body(&failure.message).as_bytes());
    }
}
