//! The lines of the agent's output.

use std::time::Instant;

use protocol::workspace::AgentEvent;
use serde_json::Value;

use super::{Turns, limits::MAX_LINE, output::Output};
use crate::agent::{dialect::contract::AgentOutput, dialect::words};

/// The length of the beginning of an overlong line that the dialect gets, in bytes.
const BEGINNING: usize = 4 * 1024;

impl Turns {
    /// Handles a line of the process's output. While a turn waits for an older process to end, the lines
    /// are that process's, and are ignored.
    pub(super) fn line(&mut self, now: Instant, line: &str) {
        if !self.has_process() || self.is_waiting() || line.trim().is_empty() {
            return;
        }
        if self.idle_since.is_some() {
            self.idle_since = Some(now);
        }
        match line.len() > MAX_LINE {
            true => self.overlong(now, line),
            false => match serde_json::from_str::<Value>(line) {
                Ok(value) if value.is_object() => self.object(now, &value),
                _ => self.plain(line),
            },
        }
    }

    fn object(&mut self, now: Instant, line: &Value) {
        let heard = self.dialect.heard(line);
        if heard.is_progress
            && let Some(turn) = &mut self.turn
        {
            turn.alive = now;
            turn.leaving = None;
        }
        for said in heard.said {
            self.said(now, said);
        }
    }

    fn overlong(&mut self, now: Instant, line: &str) {
        self.notice(&format!("A line of over {MAX_LINE} bytes was cut; it is not shown."));
        if let Some(turn) = &mut self.turn {
            turn.alive = now;
        }
        for said in self.dialect.heard_overlong(words::cut(line, BEGINNING)) {
            self.said(now, said);
        }
    }

    /// Keeps a line that is not JSON: it may be the reason why no other output comes. The first such line
    /// of a turn is also shown, and only that one, since there may be many.
    fn plain(&mut self, line: &str) {
        self.tail.push(line);
        self.tail.push("\n");
        if let Some(turn) = self.turn.as_mut().filter(|turn| !turn.has_noted) {
            turn.has_noted = true;
            self.notice(&format!("The agent printed: {}", words::cut(line, 200)));
        }
    }

    pub(super) fn said(&mut self, now: Instant, said: AgentOutput) {
        match said {
            AgentOutput::Event(AgentEvent::Text { text, delta, unasked }) => {
                let unasked = unasked || !self.is_running();
                self.event(AgentEvent::Text { text, delta, unasked });
            }
            AgentOutput::Event(event) => self.event(event),
            AgentOutput::Conversation(id) => self.talks_in(id),
            AgentOutput::Ask { key, tool, input } => self.ask(now, key, &tool, input),
            AgentOutput::AskCancelled { key } => self.withdraw(&key),
            AgentOutput::Write(bytes) => self.write(bytes),
            AgentOutput::Leaving => self.leaves(now),
            AgentOutput::Ended(ended) if self.is_running() => self.end(now, ended),
            AgentOutput::Ended(_) => {}
            AgentOutput::ResumeRefused => self.begin_anew(now),
        }
    }

    fn talks_in(&mut self, id: String) {
        if words::is_id(&id) && self.conversation.as_deref() != Some(&id) {
            self.conversation = Some(id.clone());
            self.outputs.push_back(Output::Conversation(id));
        }
    }

    fn leaves(&mut self, now: Instant) {
        let at = now + self.config.exit_timeout;
        if let Some(turn) = &mut self.turn {
            turn.leaving = Some(at);
        }
    }
}
