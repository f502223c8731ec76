//! The pieces of an answer that its whole form and its stream share.

use protocol::json;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::signature;
use crate::{
    Context,
    chat::{Finish, Usage},
};

/// The most bytes of details and extras that are kept for signatures.
const MAX_KEPT: usize = 1024 * 1024;

/// `usageMetadata`. Thoughts are counted apart from the rest of the answer. Missing counts are 0.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: u64,
    candidates_token_count: u64,
    total_token_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    cached_content_token_count: u64,
    #[serde(skip_serializing_if = "is_zero")]
    thoughts_token_count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl UsageMetadata {
    pub(super) fn of(usage: &Usage) -> Self {
        let (prompt, completion) = (usage.prompt(), usage.completion());
        let thoughts = usage.completion_tokens_details.reasoning_tokens.0.unwrap_or(0);
        let thoughts = thoughts.min(completion);
        Self {
            prompt_token_count: prompt.all,
            candidates_token_count: completion - thoughts,
            total_token_count: prompt.all.saturating_add(completion),
            cached_content_token_count: prompt.cached,
            thoughts_token_count: thoughts,
        }
    }
}

/// `finishReason`. `damaged`: whether a call was left out, because its arguments are not a JSON
/// object.
pub(super) fn finish_reason(finish: Finish, damaged: bool) -> &'static str {
    match finish {
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
        Finish::Stop | Finish::ToolCalls if damaged => "MALFORMED_FUNCTION_CALL",
        Finish::Stop | Finish::ToolCalls => "STOP",
    }
}

/// The end of each answer and element: the model and the id of the response.
pub(super) fn origin(context: &Context) -> String {
    let (model, id) = (json::write(&context.model), json::write(&context.id));
    format!("\"modelVersion\":{model},\"responseId\":{id}}}")
}

/// A call as a part; `None` if its arguments are not an object.
pub(super) fn call_part(
    id: &str,
    name: &str,
    arguments: &str,
    signature: Option<&str>,
) -> Option<String> {
    let mended = || json::mended(arguments.as_bytes());
    let object = |text: &str| {
        let is_object = text.trim_start().starts_with('{');
        serde_json::from_str::<&RawValue>(text).ok().filter(|_| is_object).map(RawValue::to_owned)
    };
    let blank = arguments.trim().is_empty();
    let args = object(if blank { "{}" } else { arguments }).or_else(|| object(&mended()?))?;
    let call = FunctionCall { id, name, args };
    Some(json::write(&CallPart { function_call: call, thought_signature: signature }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallPart<'a> {
    function_call: FunctionCall<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: Box<RawValue>,
}

/// The provider's id of a call, or else one made from the answer's id.
pub(super) fn call_id(context: &Context, id: &str, number: usize) -> String {
    if id.is_empty() { format!("call_{}_{number}", context.id) } else { id.to_owned() }
}

/// What the provider expects back in the next request, until it is sent to the client as a
/// signature.
#[derive(Debug, Default)]
pub(super) struct Seals {
    details: Vec<Value>,
    /// The text of the thoughts that the details belong to.
    thought: String,
    /// The `extra_content` of calls, by their numbers.
    extras: Vec<(usize, String)>,
    bytes: usize,
}

impl Seals {
    pub(super) fn think(&mut self, text: &str) {
        if self.fits(text.len()) {
            self.thought.push_str(text);
        }
    }

    pub(super) fn seal(&mut self, details: &[Value]) {
        let len = details.iter().map(|detail| json::write(detail).len()).sum();
        if self.fits(len) {
            self.details.extend_from_slice(details);
        }
    }

    pub(super) fn extra(&mut self, number: usize, extra: &str) {
        if self.fits(extra.len()) {
            self.extras.push((number, extra.to_owned()));
        }
    }

    fn fits(&mut self, len: usize) -> bool {
        self.bytes = self.bytes.saturating_add(len);
        self.bytes <= MAX_KEPT
    }

    /// The signature for a call: its own, or else that of the thoughts before it.
    pub(super) fn of_call(&mut self, number: usize) -> Option<String> {
        let place = self.extras.iter().position(|(of, _)| *of == number);
        let own = place.and_then(|place| signature::of_extra(&self.extras.swap_remove(place).1));
        own.or_else(|| self.of_thoughts())
    }

    /// The signature of the thoughts. Each is returned only once.
    pub(super) fn of_thoughts(&mut self) -> Option<String> {
        let details = std::mem::take(&mut self.details);
        (!details.is_empty()).then(|| signature::of_details(&details, &self.thought)).flatten()
    }
}
