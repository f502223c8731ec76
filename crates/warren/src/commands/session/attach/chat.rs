//! An agent's session as a chat: views as text; typed lines as messages.

use std::collections::VecDeque;

use client::workspace::{Ending, SessionView};
use protocol::workspace::{
    AgentEvent, ClientMessage, SessionId,
    client::{OfSession, PermissionRequest, PermissionResponse},
};

use crate::commands::{
    session::{
        conversation::Conversation,
        printed::{EventPrinter, brief},
    },
    table::plain,
};

/// The most questions that are kept: the server asks further ones again at the next attachment.
const QUESTIONS: usize = 64;
/// The turns of the conversation so far that are shown, and the lines of each prompt.
pub(super) const TURNS: usize = 20;
const PROMPT_LINES: usize = 20;

/// The meaning of a typed line.
#[derive(Debug, PartialEq)]
pub(super) enum LineEffect {
    /// A message to send, if that is possible now.
    Send(ClientMessage),
    /// A whole prompt.
    Prompt(String),
    /// A text to show.
    Say(String),
    /// Nothing.
    Nothing,
}

/// A chat with one agent.
pub(super) struct Chat {
    session: SessionId,
    is_working: bool,
    printer: EventPrinter,
    /// A prompt that was typed while the agent waited: it is on the terminal already.
    typed: Option<String>,
    questions: VecDeque<PermissionRequest>,
    pub(super) ended: Option<Ending>,
}

impl Chat {
    /// A chat on a terminal that is `width` columns wide.
    pub(super) fn new(session: SessionId, is_working: bool, width: usize) -> Self {
        Self {
            session,
            is_working,
            printer: EventPrinter::new(width).with_prompt_lines(PROMPT_LINES),
            typed: None,
            questions: VecDeque::new(),
            ended: None,
        }
    }

    /// The conversation so far, as it is shown: its last turns, and before them a line that says
    /// where the earlier ones are.
    pub(super) fn begin(&mut self, mut so_far: Conversation, name: &str) -> String {
        let before = so_far.keep_last(TURNS).map_or_else(String::new, |left_out| {
            self.printer.line(&format!("… {left_out}: warren session history {name}"))
        });
        before + &so_far.print(&mut self.printer)
    }

    /// The text that a view adds to the screen.
    pub(super) fn take(&mut self, seen: SessionView) -> String {
        match seen {
            SessionView::Event(event) => self.event(&event),
            SessionView::Turns(turns) => {
                let missed = if turns.more {
                    self.line("  … some of it was left out")
                } else {
                    String::new()
                };
                let events = turns.events.iter().map(|stored| self.event(&stored.event));
                missed + &events.collect::<String>()
            }
            SessionView::Permission(request) => self.permission(request),
            SessionView::Resolved(resolved) => {
                let was_open = self.questions.iter().any(|it| it.request_id == resolved.request_id);
                self.questions.retain(|it| it.request_id != resolved.request_id);
                if was_open { self.line("  (that question is answered)") } else { String::new() }
            }
            SessionView::Used(usage) => {
                let cost = usage.cost_usd.map_or_else(String::new, |usd| format!(", ${usd:.4}"));
                let (read, written) = (usage.input_tokens, usage.output_tokens);
                self.line(&format!("  [{read} tokens read, {written} written{cost}]"))
            }
            SessionView::Notice(notice) => self.printer.warning(&notice.message),
            SessionView::Refused(words) => self.printer.warning(&words),
            SessionView::Lost(_) => self.line("  ! connection lost, connecting again"),
            SessionView::Back => self.line("  ! the connection is back"),
            SessionView::Ended(ending) => {
                self.ended = Some(ending);
                String::new()
            }
            SessionView::Screen(_)
            | SessionView::Output(_)
            | SessionView::Size(_)
            | SessionView::Status(_)
            | SessionView::Taken { .. } => String::new(),
        }
    }

    /// The meaning of a typed line: an answer to the oldest question, or a prompt.
    pub(super) fn typed(&mut self, line: &str) -> LineEffect {
        let text = line.trim();
        let answer = match text.to_lowercase().as_str() {
            "y" | "yes" => Some(true),
            "n" | "no" => Some(false),
            _ => None,
        };
        match (self.questions.front(), answer) {
            _ if text.is_empty() => LineEffect::Nothing,
            (Some(_), None) => {
                LineEffect::Say(self.line("  ? the agent waits: y allows it, n does not"))
            }
            (Some(_), Some(allow)) => self.answered(allow),
            (None, _) => {
                self.typed = (!self.is_working).then(|| line.to_owned());
                LineEffect::Prompt(line.to_owned())
            }
        }
    }

    /// The message that ends the agent's turn, if it is in one.
    pub(super) fn interrupt(&self) -> Option<ClientMessage> {
        let session_id = self.session;
        self.is_working.then_some(ClientMessage::Interrupt(OfSession { session_id }))
    }

    fn answered(&mut self, allow: bool) -> LineEffect {
        let Some(request) = self.questions.pop_front() else { return LineEffect::Nothing };
        LineEffect::Send(ClientMessage::PermissionResponse(PermissionResponse {
            session_id: Some(self.session),
            request_id: request.request_id,
            allow,
            message: None,
        }))
    }

    fn permission(&mut self, request: PermissionRequest) -> String {
        let is_known = self.questions.iter().any(|it| it.request_id == request.request_id);
        if is_known || self.questions.len() >= QUESTIONS {
            return String::new();
        }
        let line =
            format!("  ? may it use {} on {} (y/n)", plain(&request.tool), brief(&request.input));
        self.questions.push_back(request);
        self.line(&line)
    }

    fn event(&mut self, event: &AgentEvent) -> String {
        match event {
            AgentEvent::TurnStarted { turn, prompt } => {
                self.is_working = true;
                let typed = self.typed.take();
                let prompt = prompt.clone().filter(|prompt| typed.as_ref() != Some(prompt));
                self.printer.event(&AgentEvent::TurnStarted { turn: *turn, prompt })
            }
            AgentEvent::TurnEnded { .. } => {
                self.is_working = false;
                self.questions.clear();
                self.printer.event(event)
            }
            event => self.printer.event(event),
        }
    }

    /// Ends an open line, before something else is written.
    pub(super) fn end_line(&mut self) -> &'static str {
        self.printer.end_line()
    }

    fn line(&mut self, line: &str) -> String {
        self.printer.line(line)
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{
        PermissionId, PermissionOutcome, TurnOutcome,
        client::{PermissionResolved, StoredEvent, TurnEvents},
    };
    use serde_json::json;

    use super::*;

    const ID: SessionId = SessionId::from_random(1);

    fn chat() -> Chat {
        Chat::new(ID, false, 80)
    }

    fn said(text: &str, delta: bool) -> SessionView {
        SessionView::Event(AgentEvent::Text { text: text.to_owned(), delta, unasked: false })
    }

    fn ended(outcome: TurnOutcome, text: &str) -> SessionView {
        let text = Some(text.to_owned());
        SessionView::Event(AgentEvent::TurnEnded { turn: 1, outcome, error: None, text })
    }

    fn request(number: u128) -> SessionView {
        SessionView::Permission(PermissionRequest {
            session_id: ID,
            request_id: PermissionId::from_random(number),
            tool: "Bash".to_owned(),
            input: json!({"command": "rm -r build", "x": 1}),
        })
    }

    fn shown(chat: &mut Chat, seen: Vec<SessionView>) -> String {
        seen.into_iter().map(|seen| chat.take(seen)).collect()
    }

    fn started(prompt: &str) -> SessionView {
        let prompt = Some(prompt.to_owned());
        SessionView::Event(AgentEvent::TurnStarted { turn: 1, prompt })
    }

    #[test]
    fn a_prompt_is_shown_unless_it_was_typed_here_just_before() {
        let mut chat = chat();
        assert_eq!(chat.typed("mine"), LineEffect::Prompt("mine".to_owned()));
        assert_eq!(shown(&mut chat, vec![started("mine"), said("Yes.", false)]), "Yes.");
        // Typed while the agent works, it stands far above its answer.
        chat.typed("more");
        let turns = vec![ended(TurnOutcome::Completed, "Yes."), started("more")];
        assert_eq!(shown(&mut chat, turns), "\n\n> more\n");
        let turns = vec![ended(TurnOutcome::Completed, ""), started("another's")];
        assert_eq!(shown(&mut chat, turns), "\n> another's\n");
    }

    #[test]
    fn events_that_were_missed_are_shown_as_if_they_had_just_come() {
        let event = |number, view| {
            let SessionView::Event(event) = view else { panic!() };
            StoredEvent { number, at: jiff::Timestamp::UNIX_EPOCH, event }
        };
        let events = vec![event(4, started("why?")), event(5, said("Be", false))];
        let turns = TurnEvents { session_id: ID, events, more: true };
        let seen = vec![SessionView::Turns(turns), said("cause.", true)];
        let expected = "  … some of it was left out\n\n> why?\nBecause.";
        assert_eq!(shown(&mut chat(), seen), expected);
    }

    #[test]
    fn questions_are_answered_in_order_and_lines_are_prompts_otherwise() {
        let mut chat = chat();
        assert_eq!(chat.typed("y"), LineEffect::Prompt("y".to_owned()));
        assert!(chat.take(request(1)).contains("may it use Bash on rm -r build (y/n)"));
        assert_eq!(chat.take(request(1)), "", "it is asked again after a reconnect");
        chat.take(request(2));
        assert!(matches!(chat.typed("what?"), LineEffect::Say(_)));
        for (line, number, allow) in [("Y", 1, true), (" no ", 2, false)] {
            let LineEffect::Send(ClientMessage::PermissionResponse(answer)) = chat.typed(line)
            else {
                panic!()
            };
            let expected = (PermissionId::from_random(number), allow);
            assert_eq!((answer.request_id, answer.allow), expected);
        }
        assert_eq!(chat.typed("  "), LineEffect::Nothing);
        assert_eq!(chat.typed("go on"), LineEffect::Prompt("go on".to_owned()));
    }

    #[test]
    fn a_question_that_somebody_else_answered_is_open_no_more() {
        let mut chat = chat();
        chat.take(request(1));
        let shown = chat.take(SessionView::Resolved(PermissionResolved {
            session_id: ID,
            request_id: PermissionId::from_random(1),
            outcome: PermissionOutcome::Deny,
            message: None,
        }));
        assert!(shown.contains("answered"));
        assert_eq!(chat.typed("y"), LineEffect::Prompt("y".to_owned()));
    }

    #[test]
    fn only_a_turn_that_runs_is_interrupted() {
        let mut chat = chat();
        assert_eq!(chat.interrupt(), None);
        chat.take(started("x"));
        assert!(matches!(chat.interrupt(), Some(ClientMessage::Interrupt(_))));
        chat.take(ended(TurnOutcome::Completed, ""));
        assert_eq!(chat.interrupt(), None);
    }

    #[test]
    fn no_more_questions_are_kept_than_the_bound() {
        let mut chat = chat();
        let shown = (0..100).filter(|number| !chat.take(request(*number)).is_empty()).count();
        assert_eq!((shown, chat.questions.len()), (QUESTIONS, QUESTIONS));
    }
}
