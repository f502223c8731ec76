//! Keeps a client from getting its own change both as an answer and as an event.
//!
//! A change is announced to all clients, and the client that made it gets the same message as its
//! answer. Either of the two may come first; the second one is dropped.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use protocol::workspace::ServerMessage;

/// The most messages that each of the two lists remembers.
const REMEMBERED: usize = 64;

/// The recent answers and events of one client, to be compared with each other.
#[derive(Clone, Default)]
pub(crate) struct Echoes(Arc<Mutex<EchoState>>);

#[derive(Default)]
struct EchoState {
    /// The number of answers that are still pending.
    pending: usize,
    answers: VecDeque<ServerMessage>,
    events: VecDeque<ServerMessage>,
}

/// Counts as a pending answer until it is dropped.
pub(crate) struct PendingAnswer(Echoes);

impl Echoes {
    /// Begins to wait for an answer that may also be announced as an event.
    pub(crate) fn pending(&self) -> PendingAnswer {
        self.lock().pending += 1;
        PendingAnswer(self.clone())
    }

    /// Admits an event. Returns whether the caller has to send it: `false` if the client already has
    /// it as an answer. An event that is sent is remembered while an answer is pending.
    pub(crate) fn admit_event(&self, message: &ServerMessage) -> bool {
        let mut state = self.lock();
        let EchoState { pending, answers, events } = &mut *state;
        if take(answers, message) {
            return false;
        }
        if *pending > 0 {
            remember(events, message);
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, EchoState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingAnswer {
    /// Admits an answer. Returns whether the caller has to send it: `false` if the client already has
    /// it as an event. An answer that is sent is remembered.
    pub(crate) fn admit_answer(&self, message: &ServerMessage) -> bool {
        let mut state = self.0.lock();
        let EchoState { answers, events, .. } = &mut *state;
        let is_new = !take(events, message);
        if is_new {
            remember(answers, message);
        }
        is_new
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.pending -= 1;
        if state.pending == 0 {
            // No answer is left that could be equal to one of them.
            state.events = VecDeque::new();
        }
    }
}

fn take(messages: &mut VecDeque<ServerMessage>, message: &ServerMessage) -> bool {
    let at = messages.iter().position(|known| known == message);
    at.is_some_and(|at| messages.remove(at).is_some())
}

fn remember(messages: &mut VecDeque<ServerMessage>, message: &ServerMessage) {
    if messages.len() >= REMEMBERED {
        messages.pop_front();
    }
    messages.push_back(message.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> ServerMessage {
        ServerMessage::error(text)
    }

    #[test]
    fn a_change_is_either_an_answer_or_an_announcement() {
        let echoes = Echoes::default();
        assert!(echoes.admit_event(&message("before")));
        let pending = echoes.pending();
        assert!(pending.admit_answer(&message("before")), "nobody was asked then");
        assert!(echoes.admit_event(&message("a")));
        assert!(!pending.admit_answer(&message("a")));
        assert!(pending.admit_answer(&message("b")));
        drop(pending);
        assert!(!echoes.admit_event(&message("b")));
        assert!(echoes.admit_event(&message("b")), "once");
    }

    #[test]
    fn no_more_is_remembered_than_the_bound() {
        let echoes = Echoes::default();
        let pending = echoes.pending();
        for number in 0..REMEMBERED * 2 {
            echoes.admit_event(&message(&format!("told {number}")));
            pending.admit_answer(&message(&format!("answered {number}")));
        }
        let state = echoes.lock();
        assert_eq!((state.events.len(), state.answers.len()), (REMEMBERED, REMEMBERED));
    }
}
