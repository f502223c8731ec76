//! One line of an answer.

use protocol::json;
use serde::Serialize;
use serde_json::value::RawValue;

use super::clock::Durations;
use crate::chat::Usage;

/// Where the text of an answer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// In `message`.
    Chat,
    /// In `response`.
    Generate,
}

/// A call of a tool, its arguments an object.
#[derive(Debug, Serialize)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) function: Function,
}

#[derive(Debug, Serialize)]
pub(crate) struct Function {
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) arguments: Box<RawValue>,
}

/// The content of one line or one whole answer.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) text: &'a str,
    pub(crate) thinking: &'a str,
    pub(crate) calls: &'a [Call],
}

/// How an answer ended.
#[derive(Debug, Serialize)]
pub(crate) struct End {
    done: bool,
    done_reason: &'static str,
    total_duration: u64,
    load_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_eval_count: Option<u64>,
    prompt_eval_duration: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_count: Option<u64>,
    eval_duration: u64,
}

impl End {
    pub(crate) fn new(done_reason: &'static str, times: &Durations, usage: &Usage) -> Self {
        Self {
            done: true,
            done_reason,
            total_duration: times.total,
            load_duration: 0,
            prompt_eval_count: usage.prompt_tokens.0.map(|_| usage.prompt().all),
            prompt_eval_duration: times.prompt,
            eval_count: usage.completion_tokens.0,
            eval_duration: times.answer,
        }
    }
}

/// Appends one object, without a line break. `prefix` is its beginning, up to the quote before the time.
/// `ended` is given for the last object.
pub(crate) fn push(
    line: &mut String,
    prefix: &str,
    form: Form,
    now: &str,
    said: &Said<'_>,
    ended: Option<&End>,
) {
    line.push_str(prefix);
    line.push_str(now);
    line.push_str("\",");
    match form {
        Form::Chat => {
            line.push_str(r#""message":{"role":"assistant","content":""#);
            push_said(line, said);
            if !said.calls.is_empty() {
                line.push_str(r#","tool_calls":"#);
                line.push_str(&json::write(&said.calls));
            }
            line.push('}');
        }
        Form::Generate => {
            line.push_str(r#""response":""#);
            push_said(line, said);
        }
    }
    match ended {
        Some(ended) => {
            line.push(',');
            line.push_str(json::write(ended).trim_start_matches('{'));
        }
        None => line.push_str(r#","done":false}"#),
    }
}

/// Appends the text with its closing quote, and the thoughts if there are any.
fn push_said(line: &mut String, said: &Said<'_>) {
    push_text(line, said.text);
    line.push('"');
    if !said.thinking.is_empty() {
        line.push_str(r#","thinking":""#);
        push_text(line, said.thinking);
        line.push('"');
    }
}

/// Characters that some clients' readers take for a line break, although JSON does not.
const BREAKS: [char; 3] = ['\u{85}', '\u{2028}', '\u{2029}'];

/// Appends a text with its escapes. Characters that some readers take for a line break are escaped
/// as well.
fn push_text(line: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(BREAKS) {
        json::push_escaped(line, &rest[..at]);
        let mut after = rest[at..].chars();
        if let Some(found) = after.next() {
            line.push_str(&format!("\\u{:04x}", found as u32));
        }
        rest = after.as_str();
    }
    json::push_escaped(line, rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_breaks_a_line() {
        let mut line = String::new();
        push_text(&mut line, "a\u{2028}\"\n\u{85}é\u{2029}");
        assert_eq!(line, "a\\u2028\\\"\\n\\u0085é\\u2029");
        let read: String = serde_json::from_str(&format!("\"{line}\"")).unwrap();
        assert_eq!(read, "a\u{2028}\"\n\u{85}é\u{2029}");
    }
}
