//! Which turns are a prompt's.
//!
//! The program begins turns of its own: when a background task ends, at a time that it was told, when another
//! session writes. Such a turn may come before a prompt that waits, and may take that prompt up in its middle. By
//! these signs a result is told to be the prompt's, the surest first:
//!
//! - The prompt's id: newer versions name it in the result, and all repeat the prompt when it is taken up.
//! - The result's `origin`. A version that does not know it says nothing, and neither does a prompt's own.
//! - Whether the turn had begun before there was a prompt.

use serde_json::Value;

use super::{
    super::json::{list, text},
    is_own,
};

/// What is known of the turn that goes on.
#[derive(Debug, Default)]
pub(super) struct Origin {
    prompt: Option<Given>,
    /// Whether the turn began when there was no prompt.
    is_unasked: bool,
}

/// A prompt that has no result yet.
#[derive(Debug)]
struct Given {
    id: String,
    is_taken_up: bool,
}

impl Origin {
    /// A prompt was given.
    pub(super) fn prompted(&mut self, id: &str) {
        self.prompt = Some(Given { id: id.to_owned(), is_taken_up: false });
    }

    /// Whether a prompt has no result yet.
    pub(super) fn has_prompt(&self) -> bool {
        self.prompt.is_some()
    }

    /// Whether the turn that goes on is no prompt's.
    pub(super) fn is_unasked(&self) -> bool {
        self.is_unasked
    }

    /// A line of a turn, whatever it says.
    pub(super) fn heard(&mut self, line: &Value) {
        let is_echo = line.get("isReplay") == Some(&Value::Bool(true));
        match &mut self.prompt {
            Some(given)
                if is_echo && text(line, "/uuid") == given.id
                    || given.is_named(line) == Some(true) =>
            {
                given.is_taken_up = true;
                self.is_unasked = false;
            }
            Some(_) => {}
            None => self.is_unasked |= !is_echo && is_work(line),
        }
    }

    /// A turn ends with this result: whether it was the prompt's.
    pub(super) fn ends(&mut self, result: &Value) -> bool {
        let named = self.prompt.as_ref().and_then(|given| given.is_named(result));
        self.ends_by(named, text(result, "/origin/kind"))
    }

    /// The same, of the beginning of a result that is too long.
    pub(super) fn ends_overlong(&mut self, beginning: &str) -> bool {
        let kind = beginning
            .split_once(r#""origin":{"kind":""#)
            .and_then(|(_, rest)| rest.split('"').next());
        self.ends_by(None, kind.unwrap_or_default())
    }

    fn ends_by(&mut self, named: Option<bool>, origin: &str) -> bool {
        let was_unasked = std::mem::take(&mut self.is_unasked);
        let by_origin = match origin {
            "" => !was_unasked,
            kind => kind == "human",
        };
        let is_own = |given: &mut Given| given.is_taken_up || named.unwrap_or(by_origin);
        self.prompt.take_if(is_own).is_some()
    }
}

impl Given {
    /// Whether the line names this prompt, if it names any.
    fn is_named(&self, line: &Value) -> Option<bool> {
        let all = list(line, "/user_message_uuids").iter().filter_map(Value::as_str);
        let mut named = all.chain(line.get("user_message_uuid").and_then(Value::as_str)).peekable();
        named.peek()?;
        Some(named.any(|id| id == self.id))
    }
}

/// Whether a line is of a turn: its beginning, or what the agent says in it. Its helpers may speak between turns.
fn is_work(line: &Value) -> bool {
    match text(line, "/type") {
        "system" => text(line, "/subtype") == "init",
        kind => matches!(kind, "assistant" | "stream_event") && is_own(line),
    }
}
