//! Decides which turns belong to a prompt.
//!
//! The program begins turns of its own: when a background task ends, at a scheduled time, when another
//! session sends a message. Such a turn may run before a waiting prompt, and may take the prompt up in
//! its middle. These signs show that a result belongs to the prompt, the most reliable first:
//!
//! - The prompt's id: newer versions name it in the result, and all versions repeat the prompt when they
//!   take it up.
//! - The result's `origin`. Older versions do not write it, and it is absent in the result of a prompt.
//! - Whether the turn had begun before there was a prompt.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    super::json::{list, text},
    is_own,
};

/// The known facts about the running turn.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Origin {
    prompt: Option<OpenPrompt>,
    /// Whether the turn began while there was no prompt.
    is_unasked: bool,
}

/// A prompt that has no result yet.
#[derive(Debug, Serialize, Deserialize)]
struct OpenPrompt {
    id: String,
    is_taken_up: bool,
}

impl Origin {
    /// Notes that a prompt was given.
    pub(super) fn note_prompt(&mut self, id: &str) {
        self.prompt = Some(OpenPrompt { id: id.to_owned(), is_taken_up: false });
    }

    /// Whether a prompt has no result yet.
    pub(super) fn has_prompt(&self) -> bool {
        self.prompt.is_some()
    }

    /// Whether the running turn belongs to no prompt.
    pub(super) fn is_unasked(&self) -> bool {
        self.is_unasked
    }

    /// Notes a line of any kind.
    pub(super) fn note_line(&mut self, line: &Value) {
        let is_echo = line.get("isReplay") == Some(&Value::Bool(true));
        match &mut self.prompt {
            Some(prompt)
                if is_echo && text(line, "/uuid") == prompt.id
                    || prompt.is_named(line) == Some(true) =>
            {
                prompt.is_taken_up = true;
                self.is_unasked = false;
            }
            Some(_) => {}
            None => self.is_unasked |= !is_echo && is_work(line),
        }
    }

    /// Ends the turn with this result. Returns whether the turn was the prompt's.
    pub(super) fn ends(&mut self, result: &Value) -> bool {
        let named = self.prompt.as_ref().and_then(|prompt| prompt.is_named(result));
        let was_unasked = std::mem::take(&mut self.is_unasked);
        let by_origin = match text(result, "/origin/kind") {
            "" => !was_unasked,
            kind => kind == "human",
        };
        let is_own = |prompt: &mut OpenPrompt| prompt.is_taken_up || named.unwrap_or(by_origin);
        self.prompt.take_if(is_own).is_some()
    }
}

impl OpenPrompt {
    /// Whether a line names this prompt; `None` if it names no prompt.
    fn is_named(&self, line: &Value) -> Option<bool> {
        let all = list(line, "/user_message_uuids").iter().filter_map(Value::as_str);
        let mut named = all.chain(line.get("user_message_uuid").and_then(Value::as_str)).peekable();
        named.peek()?;
        Some(named.any(|id| id == self.id))
    }
}

/// Whether a line is part of a turn: its beginning, or the agent's output in it. Lines of the agent's
/// helpers do not count, since they may come between turns.
fn is_work(line: &Value) -> bool {
    match text(line, "/type") {
        "system" => text(line, "/subtype") == "init",
        kind => matches!(kind, "assistant" | "stream_event") && is_own(line),
    }
}
