//! The conversation with an agent so far: its stored events, in order, by turns.

use client::{ClientError, Workspace};
use protocol::workspace::{
    AgentEvent, SessionId,
    client::{GetTurns, StoredEvent},
};

use super::printed::EventPrinter;

/// The bytes that are asked for at once.
const PAGE: u64 = 1024 * 1024;
/// The most events that are shown of an agent whose turns are not known.
const EVENTS: usize = 400;

/// The end of a conversation.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) events: Vec<StoredEvent>,
    /// Whether the server has earlier events.
    has_more: bool,
}

impl Conversation {
    /// The newest events, at least `turns` turns of them if there are. `None` from a server that
    /// stores none.
    pub(super) async fn newest(
        workspace: &mut Workspace,
        session_id: SessionId,
        turns: usize,
        pages: usize,
    ) -> Result<Option<Self>, ClientError> {
        let mut conversation = Self::default();
        for _ in 0..pages {
            let before = conversation.events.first().map(|event| event.number);
            let request = GetTurns { session_id, before, after: None, max_bytes: Some(PAGE) };
            let page = match workspace.turns(request).await {
                Err(ClientError::Declined { .. } | ClientError::Late { .. })
                    if before.is_none() =>
                {
                    return Ok(None);
                }
                page => page?,
            };
            // A server that repeats itself has no more.
            let is_new =
                page.events.last().is_some_and(|last| before.is_none_or(|it| last.number < it));
            if !is_new {
                conversation.has_more = false;
                break;
            }
            conversation.events.splice(0..0, page.events);
            conversation.has_more = page.more;
            if !page.more || conversation.starts().count() > turns {
                break;
            }
        }
        Ok(Some(conversation))
    }

    /// The number of the newest event; 0 if there is none.
    pub(super) fn last_number(&self) -> u64 {
        self.events.last().map_or(0, |event| event.number)
    }

    /// Keeps only the last turns. Returns the rest in words.
    pub(super) fn keep_last(&mut self, turns: usize) -> Option<String> {
        let starts: Vec<(usize, u64)> = self.starts().collect();
        let left_out = starts.len().saturating_sub(turns.max(1));
        let Some(&(from, turn)) = starts.get(left_out) else {
            let excess = self.events.len().saturating_sub(EVENTS);
            self.events.drain(..excess);
            return (self.has_more || excess > 0).then(|| "what was before".to_owned());
        };
        if !self.has_more && left_out == 0 {
            return None;
        }
        self.events.drain(..from);
        match turn.saturating_sub(1) {
            0 => None,
            1 => Some("1 earlier turn".to_owned()),
            earlier => Some(format!("{earlier} earlier turns")),
        }
    }

    /// The events as text, each tool's result beside its use.
    pub(super) fn print(&self, printer: &mut EventPrinter) -> String {
        let mut is_printed = vec![false; self.events.len()];
        let mut text = String::new();
        for (at, stored) in self.events.iter().enumerate() {
            if std::mem::replace(&mut is_printed[at], true) {
                continue;
            }
            text += &printer.event(&stored.event);
            let AgentEvent::ToolStarted { id, .. } = &stored.event else { continue };
            if let Some(end) = self.end_of_tool(at, id) {
                is_printed[end] = true;
                text += &printer.event(&self.events[end].event);
            }
        }
        text
    }

    /// The index of the result of a tool that is used here, in the same turn.
    fn end_of_tool(&self, at: usize, tool: &str) -> Option<usize> {
        let later = self.events.iter().enumerate().skip(at + 1);
        let mut same_turn =
            later.take_while(|(_, it)| !matches!(it.event, AgentEvent::TurnEnded { .. }));
        let is_end =
            |event: &AgentEvent| matches!(event, AgentEvent::ToolFinished { id, .. } if id == tool);
        same_turn.find(|(_, it)| is_end(&it.event)).map(|(end, _)| end)
    }

    /// The indices at which turns begin, and their numbers.
    fn starts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.events.iter().enumerate().filter_map(|(at, stored)| match stored.event {
            AgentEvent::TurnStarted { turn, .. } => Some((at, turn)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use protocol::workspace::TurnOutcome;
    use serde_json::Value;

    use super::*;

    fn conversation(has_more: bool, events: Vec<AgentEvent>) -> Conversation {
        let at = Timestamp::UNIX_EPOCH;
        let stored = |(number, event)| StoredEvent { number, at, event };
        Conversation { events: (1..).zip(events).map(stored).collect(), has_more }
    }

    fn turns(numbers: std::ops::RangeInclusive<u64>) -> Vec<AgentEvent> {
        let turn = |turn| {
            let prompt = Some(format!("prompt {turn}"));
            let end = AgentEvent::TurnEnded {
                turn,
                outcome: TurnOutcome::Completed,
                error: None,
                text: None,
            };
            [AgentEvent::TurnStarted { turn, prompt }, end]
        };
        numbers.flat_map(turn).collect()
    }

    fn printed(conversation: &Conversation) -> String {
        conversation.print(&mut EventPrinter::new(80))
    }

    #[test]
    fn the_last_turns_are_kept_and_the_others_counted() {
        let mut whole = conversation(false, turns(1..=3));
        assert_eq!(whole.keep_last(3), None);
        assert_eq!(printed(&whole), "> prompt 1\n\n> prompt 2\n\n> prompt 3\n");
        assert_eq!(whole.keep_last(2).as_deref(), Some("1 earlier turn"));
        assert_eq!(printed(&whole), "> prompt 2\n\n> prompt 3\n");
        // The server has more than it sent: the first turn is not whole.
        let mut end = conversation(true, turns(37..=40).split_off(1));
        assert_eq!(end.keep_last(20).as_deref(), Some("37 earlier turns"));
        assert!(printed(&end).starts_with("> prompt 38\n"));
        assert_eq!(conversation(false, Vec::new()).keep_last(20), None);
    }

    #[test]
    fn what_was_said_before_the_first_turn_stays_if_it_is_all_there() {
        let said = AgentEvent::Text { text: "Hello.".to_owned(), delta: false, unasked: true };
        let mut whole = conversation(false, [vec![said], turns(1..=1)].concat());
        assert_eq!(whole.keep_last(20), None);
        assert_eq!(printed(&whole), "Hello.\n\n> prompt 1\n");
    }

    #[test]
    fn without_turns_the_newest_events_are_kept() {
        let notice = AgentEvent::Notice { message: "x".to_owned() };
        let mut many = conversation(false, vec![notice; EVENTS + 1]);
        assert!(many.keep_last(20).is_some());
        assert_eq!(many.events.len(), EVENTS);
    }

    #[test]
    fn tools_that_were_used_at_once_have_their_results_beside_them() {
        let tool = |id: &str| AgentEvent::ToolStarted {
            id: id.to_owned(),
            name: id.to_owned(),
            input: Value::Null,
        };
        let done = |id: &str, ok| AgentEvent::ToolFinished {
            id: id.to_owned(),
            ok,
            output: "why".to_owned(),
        };
        let events = vec![tool("A"), tool("B"), done("B", true), done("A", false)];
        let expected = "  → A … failed\n  ! why\n  → B … ok\n";
        assert_eq!(printed(&conversation(false, events)), expected);
    }
}
