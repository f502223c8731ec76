//! An agent's session as a chat: what is seen, as text; what is typed, as messages.

use std::collections::VecDeque;

use client::workspace::{Ending, SessionView};
use protocol::workspace::{
    AgentEvent, ClientMessage, SessionId, TurnOutcome,
    client::{OfSession, PermissionRequest, PermissionResponse},
};
use serde_json::Value;

use crate::commands::table::plain;

/// The longest that is shown of what a tool is used on, and of what came of it.
const SHOWN: usize = 400;
/// More questions than these are not kept: the server asks them again at the next attachment.
const QUESTIONS: usize = 64;

/// What a typed line means.
#[derive(Debug, PartialEq)]
pub(super) enum Typed {
    /// To be sent, if that can be now.
    Send(ClientMessage),
    /// A whole prompt.
    Prompt(String),
    /// To be shown.
    Say(String),
    /// Nothing.
    Nothing,
}

/// A chat with one agent.
pub(super) struct Chat {
    session: SessionId,
    is_working: bool,
    /// Whether the last line that was shown has not ended.
    in_line: bool,
    has_text: bool,
    questions: VecDeque<PermissionRequest>,
    pub(super) ended: Option<Ending>,
}

impl Chat {
    pub(super) fn new(session: SessionId, is_working: bool) -> Self {
        Self {
            session,
            is_working,
            in_line: false,
            has_text: false,
            questions: VecDeque::new(),
            ended: None,
        }
    }

    /// What something that is seen adds to what is shown.
    pub(super) fn take(&mut self, seen: SessionView) -> String {
        match seen {
            SessionView::Event(event) => self.event(event),
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
            SessionView::Notice(notice) => {
                self.line(&format!("  ! {}", base::plain::lines(&notice.message)))
            }
            SessionView::Refused(words) => {
                self.line(&format!("  ! {}", base::plain::lines(&words)))
            }
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

    /// What a line that was typed means: an answer to the oldest question, or a prompt.
    pub(super) fn typed(&mut self, line: &str) -> Typed {
        let text = line.trim();
        let answer = match text.to_lowercase().as_str() {
            "y" | "yes" => Some(true),
            "n" | "no" => Some(false),
            _ => None,
        };
        match (self.questions.front(), answer) {
            _ if text.is_empty() => Typed::Nothing,
            (Some(_), None) => {
                Typed::Say(self.line("  ? the agent waits: y allows it, n does not"))
            }
            (Some(_), Some(allow)) => self.answered(allow),
            (None, _) => Typed::Prompt(line.to_owned()),
        }
    }

    /// What ends the agent's turn, if it is in one.
    pub(super) fn interrupt(&self) -> Option<ClientMessage> {
        let session_id = self.session;
        self.is_working.then_some(ClientMessage::Interrupt(OfSession { session_id }))
    }

    fn answered(&mut self, allow: bool) -> Typed {
        let Some(request) = self.questions.pop_front() else { return Typed::Nothing };
        Typed::Send(ClientMessage::PermissionResponse(PermissionResponse {
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

    fn event(&mut self, event: AgentEvent) -> String {
        match event {
            AgentEvent::TurnStarted { .. } => {
                (self.is_working, self.has_text) = (true, false);
                String::new()
            }
            AgentEvent::Text { text, delta, .. } => self.text(&base::plain::lines(&text), delta),
            AgentEvent::Thinking { text } => {
                self.line(&format!("  ~ {}", cut(&base::plain::lines(&text))))
            }
            AgentEvent::ToolStarted { name, input, .. } => {
                self.line(&format!("  > {} {}", plain(&name), brief(&input)))
            }
            AgentEvent::ToolFinished { ok: true, .. } => String::new(),
            AgentEvent::ToolFinished { ok: false, output, .. } => {
                self.line(&format!("  ! failed: {}", cut(&base::plain::lines(&output))))
            }
            AgentEvent::Notice { message } => {
                self.line(&format!("  ! {}", base::plain::lines(&message)))
            }
            AgentEvent::TurnEnded { outcome, error, text, .. } => {
                self.turn_ended(outcome, error.as_deref(), text.as_deref())
            }
        }
    }

    fn text(&mut self, text: &str, goes_on: bool) -> String {
        let before = if self.in_line && !(goes_on && self.has_text) { "\n" } else { "" };
        self.in_line = !text.is_empty() && !text.ends_with('\n');
        self.has_text = true;
        format!("{before}{text}")
    }

    fn turn_ended(
        &mut self,
        outcome: TurnOutcome,
        error: Option<&str>,
        text: Option<&str>,
    ) -> String {
        self.is_working = false;
        self.questions.clear();
        let whole = text.filter(|_| !self.has_text).map(base::plain::lines).unwrap_or_default();
        let mut shown = if whole.is_empty() { String::new() } else { self.text(&whole, false) };
        let why = error.map(base::plain::lines).unwrap_or_default();
        shown += &match outcome {
            TurnOutcome::Completed => self.line(""),
            TurnOutcome::Interrupted => self.line("  ! the turn was interrupted"),
            TurnOutcome::Failed => self.line(&format!("  ! the turn failed: {why}")),
        };
        shown
    }

    /// A line of its own; an empty one ends what is open.
    fn line(&mut self, line: &str) -> String {
        let before = if std::mem::take(&mut self.in_line) { "\n" } else { "" };
        self.has_text &= line.is_empty();
        if line.is_empty() { before.to_owned() } else { format!("{before}{line}\n") }
    }
}

/// What a tool is used on, in one line.
fn brief(input: &Value) -> String {
    let telling = ["command", "file_path", "path", "url", "pattern", "query"];
    let words = telling.iter().find_map(|name| input[name].as_str());
    cut(&plain(&words.map_or_else(|| input.to_string(), str::to_owned)))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{PermissionId, PermissionOutcome, client::PermissionResolved};
    use serde_json::json;

    use super::*;

    const ID: SessionId = SessionId::from_random(1);

    fn chat() -> Chat {
        Chat::new(ID, false)
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

    #[test]
    fn a_turn_reads_as_a_conversation() {
        let tool = AgentEvent::ToolStarted {
            id: "t".to_owned(),
            name: "Bash".to_owned(),
            input: json!({"command": "ls\n-l"}),
        };
        let turn = vec![
            SessionView::Event(AgentEvent::TurnStarted { turn: 1, prompt: None }),
            said("Let me ", false),
            said("look.", true),
            SessionView::Event(tool),
            said("Done\u{1b}[2J.", true),
            ended(TurnOutcome::Completed, "Done."),
        ];
        let expected = "Let me look.\n  > Bash ls\u{fffd}-l\nDone\u{fffd}[2J.\n";
        assert_eq!(shown(&mut chat(), turn), expected);
        let only_at_the_end = vec![ended(TurnOutcome::Completed, "All.")];
        assert_eq!(shown(&mut chat(), only_at_the_end), "All.\n");
        let failed = vec![said("half", false), ended(TurnOutcome::Interrupted, "half")];
        assert_eq!(shown(&mut chat(), failed), "half\n  ! the turn was interrupted\n");
    }

    #[test]
    fn questions_are_answered_in_order_and_lines_are_prompts_otherwise() {
        let mut chat = chat();
        assert_eq!(chat.typed("y"), Typed::Prompt("y".to_owned()));
        assert!(chat.take(request(1)).contains("may it use Bash on rm -r build (y/n)"));
        assert_eq!(chat.take(request(1)), "", "it is asked again after a reconnect");
        chat.take(request(2));
        assert!(matches!(chat.typed("what?"), Typed::Say(_)));
        for (line, number, allow) in [("Y", 1, true), (" no ", 2, false)] {
            let Typed::Send(ClientMessage::PermissionResponse(answer)) = chat.typed(line) else {
                panic!()
            };
            let expected = (PermissionId::from_random(number), allow);
            assert_eq!((answer.request_id, answer.allow), expected);
        }
        assert_eq!(chat.typed("  "), Typed::Nothing);
        assert_eq!(chat.typed("go on"), Typed::Prompt("go on".to_owned()));
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
        assert_eq!(chat.typed("y"), Typed::Prompt("y".to_owned()));
    }

    #[test]
    fn only_a_turn_that_runs_is_interrupted() {
        let mut chat = chat();
        assert_eq!(chat.interrupt(), None);
        chat.take(SessionView::Event(AgentEvent::TurnStarted { turn: 1, prompt: None }));
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
