//! The lines of the agent's output.

use std::time::Instant;

use protocol::{json::repair, workspace::AgentEvent};
use serde_json::Value;

use super::{Turns, config::MAX_LINE, output::Output};
use crate::agent::{
    dialect::{contract::AgentOutput, words},
    line::Line,
};

impl Turns {
    /// Handles a line of the process's output. While a turn waits for an older process to end, the lines
    /// come from that process, and are ignored.
    pub(super) fn line(&mut self, now: Instant, line: &Line) {
        if !self.has_process() || self.is_waiting() || line.text.trim().is_empty() {
            return;
        }
        // A process that prints between turns is at work, and is not stopped for being idle.
        if self.idle_since.is_some() {
            self.idle_since = Some(now);
        }
        if let Some(cut) = &line.cut {
            self.note_cut(now, cut.bytes);
        }
        match repair::value(&line.text).filter(Value::is_object) {
            Some(value) => self.object(now, &value, line),
            None => self.plain(&line.text),
        }
    }

    fn note_cut(&mut self, now: Instant, bytes: u64) {
        let most = MAX_LINE >> 20;
        self.notice(&format!("A line of {bytes} bytes was cut: at most {most} MiB are shown."));
        if let Some(turn) = &mut self.turn {
            turn.last_progress = now;
        }
    }

    fn object(&mut self, now: Instant, value: &Value, line: &Line) {
        let parsed = match &line.cut {
            None => self.dialect.parse(value),
            Some(cut) => self.dialect.parse_cut(value, cut.whole.as_deref()),
        };
        if parsed.is_progress
            && let Some(turn) = &mut self.turn
        {
            turn.last_progress = now;
            // The program goes on after an answer that seemed complete.
            turn.exit_deadline = None;
        }
        for output in parsed.outputs {
            self.take_output(now, output);
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

    pub(super) fn take_output(&mut self, now: Instant, output: AgentOutput) {
        match output {
            AgentOutput::Event(AgentEvent::Text { text, delta, unasked }) => {
                // Text without a turn belongs to no prompt, whatever the dialect says.
                let unasked = unasked || !self.is_running();
                self.event(AgentEvent::Text { text, delta, unasked });
            }
            AgentOutput::Event(event) => self.event(event),
            AgentOutput::Conversation(id) => self.set_conversation(id),
            AgentOutput::Ask { key, tool, input } => self.ask(now, key, &tool, input),
            AgentOutput::AskCancelled { key } => self.withdraw(&key),
            AgentOutput::Write(bytes) => self.write(bytes),
            AgentOutput::Leaving => self.expect_exit(now),
            // An end without a running turn comes late, or ends a turn that the program itself began. A turn ends
            // only once.
            AgentOutput::Ended(ended) if self.is_running() => self.end(now, ended),
            AgentOutput::Ended(_) => {}
            AgentOutput::ResumeRefused => self.begin_anew(now),
        }
    }

    fn set_conversation(&mut self, id: String) {
        // The id goes to a later command line, so it must look like one.
        if words::is_id(&id) && self.conversation.as_deref() != Some(&id) {
            self.conversation = Some(id.clone());
            self.outputs.push_back(Output::Conversation(id));
        }
    }

    fn expect_exit(&mut self, now: Instant) {
        let at = now + self.config.exit_timeout;
        if let Some(turn) = &mut self.turn {
            turn.exit_deadline = Some(at);
        }
    }
}
