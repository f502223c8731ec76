//! The printed text of a turn, as it comes: on a terminal all of it, into a file or pipe the answer
//! alone.

use std::io::{IsTerminal, Write, stdout};

use base::plain;
use protocol::workspace::{AgentEvent, TurnOutcome};

use crate::commands::session::{line_width, printed::EventPrinter};

/// A turn on standard output.
#[derive(Debug)]
pub(super) enum PrintedTurn {
    Whole(EventPrinter),
    Answer(PrintedAnswer),
}

impl PrintedTurn {
    pub(super) fn new() -> Self {
        match stdout().is_terminal() {
            true => Self::Whole(EventPrinter::new(line_width())),
            false => Self::Answer(PrintedAnswer::default()),
        }
    }

    pub(super) fn print(&mut self, event: &AgentEvent) -> std::io::Result<()> {
        let text = match (self, event) {
            // The user has just given the prompt, and a failure is the command's own error.
            (Self::Whole(_), AgentEvent::TurnStarted { .. }) => String::new(),
            (Self::Whole(printer), AgentEvent::TurnEnded { turn, text, .. }) => {
                let text = text.clone();
                let outcome = TurnOutcome::Completed;
                printer.event(&AgentEvent::TurnEnded { turn: *turn, outcome, error: None, text })
            }
            (Self::Whole(printer), event) => printer.event(event),
            (Self::Answer(answer), event) => answer.text(event),
        };
        let mut out = stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    /// Ends an open line, before something else is printed.
    pub(super) fn end_line(&mut self) -> std::io::Result<()> {
        match self {
            Self::Whole(printer) => stdout().write_all(printer.end_line().as_bytes()),
            Self::Answer(_) => Ok(()),
        }
    }
}

/// The part of an answer that has been printed.
#[derive(Debug, Default)]
pub(super) struct PrintedAnswer {
    has_text: bool,
    /// Whether the last printed line is open.
    in_line: bool,
}

impl PrintedAnswer {
    /// The text that an event adds to the answer, as it is printed.
    fn text(&mut self, event: &AgentEvent) -> String {
        let mut text = String::new();
        match event {
            AgentEvent::Text { unasked: true, .. } => {}
            AgentEvent::Text { text: said, delta, .. } => {
                if !delta && self.in_line {
                    text.push('\n');
                }
                text.push_str(&plain::lines(said));
            }
            AgentEvent::TurnEnded { text: whole, .. } => {
                if let Some(whole) = whole.as_ref().filter(|_| !self.has_text) {
                    text.push_str(&plain::lines(whole));
                }
                if !text.ends_with('\n') && (self.in_line || !text.is_empty()) {
                    text.push('\n');
                }
            }
            AgentEvent::ToolStarted { .. } if self.in_line => text.push('\n'),
            _ => {}
        }
        if !text.is_empty() {
            (self.has_text, self.in_line) = (true, !text.ends_with('\n'));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, delta: bool) -> AgentEvent {
        AgentEvent::Text { text: text.to_owned(), delta, unasked: false }
    }

    fn ended() -> AgentEvent {
        let (outcome, text) = (TurnOutcome::Completed, Some("whole".to_owned()));
        AgentEvent::TurnEnded { turn: 1, outcome, error: None, text }
    }

    fn shown(events: &[AgentEvent]) -> String {
        let mut shown = PrintedAnswer::default();
        events.iter().map(|event| shown.text(event)).collect()
    }

    #[test]
    fn pieces_are_put_together_and_each_text_has_its_lines() {
        let events = [said("mi", false), said("ne", true), said("more\n", false), ended()];
        assert_eq!(shown(&events), "mine\nmore\n");
    }

    #[test]
    fn an_answer_that_comes_only_at_the_end_is_printed_then() {
        assert_eq!(shown(&[AgentEvent::TurnStarted { turn: 1, prompt: None }, ended()]), "whole\n");
    }

    #[test]
    fn what_an_agent_says_unasked_is_not_printed() {
        let unasked =
            AgentEvent::Text { text: "By the way.".to_owned(), delta: false, unasked: true };
        let events = [unasked.clone(), said("mi", false), unasked, said("ne", true), ended()];
        assert_eq!(shown(&events), "mine\n");
    }

    #[test]
    fn an_agents_text_cannot_control_the_terminal() {
        assert_eq!(shown(&[said("a\u{1b}[2J", false)]), "a\u{fffd}[2J");
    }
}
