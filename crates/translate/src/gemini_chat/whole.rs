//! An answer as one JSON object.

use protocol::{
    failure::{BadAnswer, Failure},
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

/// Keeps the parts of an answer, and writes the answer when they are complete.
#[derive(Debug)]
pub(super) struct Whole {
    context: Context,
    with_thoughts: bool,
    parts: Vec<(Part, String)>,
    seals: Seals,
}

impl Whole {
    pub(super) fn new(context: &Context, with_thoughts: bool) -> Self {
        let (context, seals) = (context.clone(), Seals::default());
        Self { context, with_thoughts, parts: Vec::new(), seals }
    }

    /// The parts as JSON, and whether a call was left out.
    fn written(&mut self) -> (Vec<String>, bool) {
        let (mut written, mut damaged) = (Vec::new(), false);
        for (part, text) in std::mem::take(&mut self.parts) {
            match part {
                Part::Reasoning if !self.with_thoughts => {}
                Part::Reasoning => {
                    written.push(format!("{{\"text\":{},\"thought\":true}}", json::write(&text)));
                }
                Part::Text | Part::Refusal => {
                    written.push(format!("{{\"text\":{}}}", json::write(&text)));
                }
                Part::Call { id, name, number } => {
                    let signature = self.seals.of_call(number);
                    let id = call_id(&self.context, &id, number);
                    let call = call_part(&id, &name, &text, signature.as_deref());
                    damaged |= call.is_none();
                    written.extend(call);
                }
            }
        }
        let signature = self.seals.of_thoughts();
        let last = signature
            .map(|it| format!("{{\"text\":\"\",\"thoughtSignature\":{}}}", json::write(&it)));
        written.extend(last);
        (written, damaged)
    }
}

impl Writer for Whole {
    fn body(&self) -> Body {
        Body::Json
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.parts.push((part.clone(), String::new()));
    }

    fn delta(&mut self, more: &str, _: &mut Vec<u8>) {
        let Some((part, text)) = self.parts.last_mut() else { return };
        text.push_str(more);
        if *part == Part::Reasoning {
            self.seals.think(more);
        }
    }

    fn seal(&mut self, details: &[Value]) {
        self.seals.seal(details);
    }

    fn extra(&mut self, number: usize, extra: &str) {
        self.seals.extra(number, extra);
    }

    fn finish(&mut self, outcome: &Outcome, out: &mut Vec<u8>) -> Result<(), BadAnswer> {
        let (parts, damaged) = self.written();
        let reason = finish_reason(outcome.finish, damaged);
        let usage = json::write(&UsageMetadata::of(&outcome.usage));
        let (parts, end) = (parts.join(","), origin(&self.context));
        let answer = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{parts}],"role":"model"}},"finishReason":"{reason}","index":0}}],"usageMetadata":{usage},{end}"#
        );
        out.extend_from_slice(answer.as_bytes());
        Ok(())
    }

    fn refuse(&mut self, status: u16, failure: &Failure, out: &mut Vec<u8>) {
        out.extend_from_slice(errors::for_gemini(status, failure).as_bytes());
    }
}
