//! A stream of partial answers, as events or as the elements of an array.

use protocol::{
    failure::{BadAnswer, Failure, MAX_KEPT},
    json,
};
use serde_json::Value;

use super::candidate::{Seals, UsageMetadata, call_id, call_part, finish_reason, origin};
use crate::{
    Context,
    answer::Body,
    chat::{Outcome, Part, Writer},
    errors,
};

/// The text around each element of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// `data:` and an empty line.
    Events,
    /// The brackets and commas of an array, with each element on a line.
    Array,
}

/// Writes an element for each piece of text, and one for each whole call.
#[derive(Debug)]
pub(super) struct Stream {
    context: Context,
    framing: Framing,
    with_thoughts: bool,
    /// The characters before and after a piece of text: for the answer's text, and for thoughts.
    around: [(String, String); 2],
    /// The part that is open.
    open: Option<Part>,
    /// The arguments of the open call so far: at most [`MAX_KEPT`] bytes.
    arguments: String,
    /// Why the answer cannot be completed.
    fault: Option<BadAnswer>,
    seals: Seals,
    /// Whether a call was left out.
    damaged: bool,
    /// Whether an element has been written.
    begun: bool,
}

impl Stream {
    pub(super) fn new(context: &Context, framing: Framing, with_thoughts: bool) -> Self {
        let end = origin(context);
        let around = ["", ",\"thought\":true"].map(|mark| {
            let before = r#"{"candidates":[{"content":{"parts":[{"text":""#.to_owned();
            let after = format!("\"{mark}}}],\"role\":\"model\"}},\"index\":0}}],{end}");
            (before, after)
        });
        Self {
            context: context.clone(),
            framing,
            with_thoughts,
            around,
            open: None,
            arguments: String::new(),
            fault: None,
            seals: Seals::default(),
            damaged: false,
            begun: false,
        }
    }

    fn argument(&mut self, text: &str) {
        if self.arguments.len() + text.len() > MAX_KEPT {
            let why = format!("the arguments of a call are longer than {MAX_KEPT} bytes");
            self.fault.get_or_insert(BadAnswer(why));
        } else {
            self.arguments.push_str(text);
        }
    }

    /// Writes an element with its framing.
    fn element(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&Self, &mut Vec<u8>)) {
        let (before, after): (&[u8], &[u8]) = match (self.framing, self.begun) {
            (Framing::Events, _) => (b"data: ", b"\r\n\r\n"),
            (Framing::Array, false) => (b"[", b"\n"),
            (Framing::Array, true) => (b",", b"\n"),
        };
        self.begun = true;
        out.extend_from_slice(before);
        write(self, out);
        out.extend_from_slice(after);
    }

    fn last_element(&mut self, element: &str, out: &mut Vec<u8>) {
        self.element(out, |_, out| out.extend_from_slice(element.as_bytes()));
        if self.framing == Framing::Array {
            out.extend_from_slice(b"]\n");
        }
    }

    fn call(&mut self, id: &str, name: &str, number: usize, out: &mut Vec<u8>) {
        let arguments = std::mem::take(&mut self.arguments);
        let signature = self.seals.of_call(number);
        let id = call_id(&self.context, id, number);
        let Some(part) = call_part(&id, name, &arguments, signature.as_deref()) else {
            self.damaged = true;
            return;
        };
        let end = origin(&self.context);
        let element = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{part}],"role":"model"}},"index":0}}],{end}"#
        );
        self.element(out, |_, out| out.extend_from_slice(element.as_bytes()));
    }
}

impl Writer for Stream {
    fn body(&self) -> Body {
        match self.framing {
            Framing::Events => Body::Events,
            Framing::Array => Body::Array,
        }
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.open = Some(part.clone());
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        let thinks = match &self.open {
            Some(Part::Call { .. }) => return self.argument(text),
            open => *open == Some(Part::Reasoning),
        };
        if thinks {
            self.seals.think(text);
        }
        if thinks && !self.with_thoughts {
            return;
        }
        let mut escaped = String::with_capacity(text.len());
        json::push_escaped(&mut escaped, text);
        self.element(out, |this, out| {
            let (before, after) = &this.around[usize::from(thinks)];
            out.extend_from_slice(before.as_bytes());
            out.extend_from_slice(escaped.as_bytes());
            out.extend_from_slice(after.as_bytes());
        });
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(Part::Call { id, name, number }) = self.open.take() {
            self.call(&id, &name, number, out);
        }
    }

    fn seal(&mut self, details: &[Value]) {
        self.seals.seal(details);
    }

    fn extra(&mut self, number: usize, extra: &str) {
        self.seals.extra(number, extra);
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        let reason = finish_reason(outcome.finish, self.damaged);
        let usage = json::write(&UsageMetadata::of(&outcome.usage));
        let signature = self.seals.of_thoughts();
        let signature = signature
            .map(|it| format!(",\"thoughtSignature\":{}", json::write(&it)))
            .unwrap_or_default();
        let end = origin(&self.context);
        let element = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":""{signature}}}],"role":"model"}},"finishReason":"{reason}","index":0}}],"usageMetadata":{usage},{end}"#
        );
        self.last_element(&element, out);
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, out: &mut Vec<u8>) {
        self.last_element(&errors::for_gemini(failure.status(), failure), out);
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::for_gemini(status, failure).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Finish, Usage};

    #[test]
    fn the_arguments_of_a_call_are_bounded() {
        let (id, created, model) = ("0".repeat(32), 1, "m".to_owned());
        let context = Context { id, created, model, streaming: true };
        let mut stream = Stream::new(&context, Framing::Events, false);
        let call = Part::Call { id: "a".to_owned(), name: "f".to_owned(), number: 0 };
        let mut out = Vec::new();
        stream.open(&call, &mut out);
        let mebibyte = "x".repeat(1024 * 1024);
        for _ in 0..MAX_KEPT / mebibyte.len() + 2 {
            stream.delta(&mebibyte, &mut out);
            assert!(stream.arguments.len() <= MAX_KEPT);
        }
        stream.close(&mut out);
        let outcome =
            Outcome { finish: Finish::ToolCalls, stop_sequence: None, usage: Usage::default() };
        let BadAnswer(why) = stream.finish(&outcome, &mut out).unwrap_err();
        assert!(why.contains("longer than"), "{why}");
        assert!(out.is_empty(), "the call is left out");
    }
}
