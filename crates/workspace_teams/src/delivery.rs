//! A message as an agent's prompt.
//!
//! An assignment is the team worker's prompt, word for word. The text of a message from another member
//! follows a line that says who sent it, and which number it has in `get_team_inbox`:
//!
//! ```text
//! [team message 12 from worker "explorer", session 550e8400-e29b-41d4-a716-446655440000]
//!
//! The tests pass now.
//! ```

use std::sync::Arc;

use ::session::{
    agent::MAX_PROMPT,
    team::{Delivery, Kind},
};
use protocol::workspace::SessionId;
use uuid::Uuid;
use workspace::{PromptFate, Receipt};

use crate::queue::{Queue, SessionNotice};

/// The receipt of the prompt with this message. If the turn never begins, the message is offered
/// again later.
pub(crate) fn receipt(queue: Arc<Queue>, delivery: &Delivery) -> Receipt {
    let Delivery { team, seq, to: session, .. } = *delivery;
    Receipt::new(move |fate| {
        queue.tell(match fate {
            PromptFate::Begun => SessionNotice::Begun { team, seq, session },
            PromptFate::Dropped => SessionNotice::NotTaken { team, seq, session },
        });
    })
}

/// The receipt of a prompt that gives results to a leader.
pub(crate) fn news_receipt(queue: Arc<Queue>, leader: Uuid) -> Receipt {
    Receipt::new(move |fate| {
        queue.tell(match fate {
            PromptFate::Begun => SessionNotice::NewsBegun { leader },
            PromptFate::Dropped => SessionNotice::NewsNotTaken { leader },
        });
    })
}

/// The sender of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Speaker {
    pub(crate) name: Option<String>,
    pub(crate) leads: bool,
}

pub(crate) fn prompt(delivery: &Delivery, from: &Speaker) -> String {
    match delivery.kind {
        Kind::Assignment => delivery.payload.to_string(),
        Kind::Message => headed(&heading(delivery, from), &delivery.payload, delivery.seq),
    }
}

/// A member, as a prompt names it: role, name if there is one, and session.
pub(crate) fn called(name: Option<&str>, leads: bool, session: Uuid) -> String {
    let role = if leads { "leader" } else { "worker" };
    let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
    format!("{role}{name}, session {}", SessionId::from_uuid(session))
}

fn heading(delivery: &Delivery, from: &Speaker) -> String {
    let from = called(from.name.as_deref(), from.leads, delivery.from);
    format!("[team message {} from {from}]\n\n", delivery.seq)
}

fn headed(heading: &str, payload: &str, seq: u64) -> String {
    let room = MAX_PROMPT - heading.len();
    if payload.len() <= room {
        return format!("{heading}{payload}");
    }
    let cut = format!("\n\n[cut: the whole message is in the inbox, from since_seq {seq} on]");
    // A prompt has a bound; the inbox has the whole message.
    let end = payload.floor_char_boundary(room - cut.len());
    format!("{heading}{}{cut}", payload.get(..end).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(kind: Kind, payload: &str) -> Delivery {
        let (team, from, to) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        Delivery { team, seq: 12, from, to, kind, payload: payload.into() }
    }

    #[test]
    fn a_message_says_who_it_is_from_and_where_it_is_to_be_found() {
        let from = Speaker { name: Some("ex\nplorer".to_owned()), leads: false };
        let text = prompt(&delivery(Kind::Message, "done"), &from);
        let id = "00000000-0000-0000-0000-000000000002";
        let heading = format!("[team message 12 from worker \"ex\\nplorer\", session {id}]");
        assert_eq!(text, format!("{heading}\n\ndone"));
        let leader = Speaker { name: None, leads: true };
        let text = prompt(&delivery(Kind::Message, "go"), &leader);
        assert_eq!(text, format!("[team message 12 from leader, session {id}]\n\ngo"));
    }

    #[test]
    fn a_workers_task_is_its_prompt_word_for_word() {
        let leader = Speaker { name: None, leads: true };
        assert_eq!(prompt(&delivery(Kind::Assignment, "audit auth.rs"), &leader), "audit auth.rs");
    }

    #[test]
    fn a_message_that_is_too_long_for_a_prompt_is_cut_and_says_where_the_whole_is() {
        let leader = Speaker { name: None, leads: true };
        let text = prompt(&delivery(Kind::Message, &"é".repeat(MAX_PROMPT / 2)), &leader);
        assert!(text.len() <= MAX_PROMPT && text.len() > MAX_PROMPT - 8, "{}", text.len());
        assert!(text.ends_with("since_seq 12 on]"), "{}", &text[text.len() - 80..]);
    }
}
