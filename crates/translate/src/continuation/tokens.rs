//! The usage of an answer that came from several providers.

use serde_json::{Map, Value};

use super::{record::Record, shape::Object};

/// The tokens that earlier providers delivered. The next provider counts them as part of its
/// prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Before {
    tokens: u64,
    thoughts: u64,
}

/// The names of the counts in one API.
pub(super) struct Names {
    pub(super) prompt: &'static str,
    pub(super) answer: &'static str,
    pub(super) prompt_details: &'static str,
    pub(super) answer_details: &'static str,
}

/// Those of Chat Completions and Completions.
pub(super) const CHAT: Names = Names {
    prompt: "prompt_tokens",
    answer: "completion_tokens",
    prompt_details: "prompt_tokens_details",
    answer_details: "completion_tokens_details",
};

/// Those of Responses.
pub(super) const INPUT: Names = Names {
    prompt: "input_tokens",
    answer: "output_tokens",
    prompt_details: "input_tokens_details",
    answer_details: "output_tokens_details",
};

impl Before {
    /// The tokens of this answer so far.
    pub(super) fn of(record: &Record) -> Self {
        Self { tokens: record.tokens(), thoughts: record.thought_pieces }
    }

    /// Turns the next provider's usage into that of the whole answer: moves the delivered tokens from the prompt to
    /// the answer.
    pub(super) fn add_to(self, usage: &mut Object, names: &Names) {
        let prompt = change(usage, names.prompt, |count| count.saturating_sub(self.tokens));
        let answer = change(usage, names.answer, |count| count.saturating_add(self.tokens));
        if let (Some(prompt), Some(answer)) = (prompt, answer) {
            change(usage, "total_tokens", |_| prompt.saturating_add(answer));
        }
        if let Some(prompt) = prompt {
            details(usage, names.prompt_details, "cached_tokens", |cached| cached.min(prompt));
        }
        details(usage, names.answer_details, "reasoning_tokens", |thought| {
            thought.saturating_add(self.thoughts)
        });
    }
}

/// The counts in Messages that add up to the prompt.
const PARTS: [&str; 3] = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];

impl Before {
    /// The same in the form of Messages.
    pub(super) fn add_to_message(self, usage: &mut Object) {
        change(usage, "output_tokens", |count| count.saturating_add(self.tokens));
        let mut rest = self.tokens;
        for part in PARTS {
            let Some(count) = usage.get(part).and_then(Value::as_u64) else { continue };
            usage.insert(part.to_owned(), count.saturating_sub(rest).into());
            rest = rest.saturating_sub(count);
        }
    }
}

fn details(usage: &mut Object, part: &str, name: &str, to: impl Fn(u64) -> u64) {
    if let Some(details) = usage.get_mut(part).and_then(Value::as_object_mut) {
        change(details, name, to);
    }
}

/// Changes a count, if it is there.
fn change(counts: &mut Map<String, Value>, name: &str, to: impl Fn(u64) -> u64) -> Option<u64> {
    let count = counts.get_mut(name)?;
    let new = to(count.as_u64()?);
    *count = new.into();
    Some(new)
}
