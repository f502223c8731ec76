//! How a program's questions to its terminal are answered.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use session::terminal::query::Query;

use super::{Session, clients::viewer};

/// The most questions of one read that are answered. More come from no program that waits for answers.
pub(crate) const MOST: usize = 64;

impl Session {
    /// Answers a question that has just been appended, or leaves it to the terminal of the client in
    /// control.
    pub(super) fn answer_query(self: &Arc<Self>, query: &Query, now: Instant) {
        // The screen is painted up to the question, so the answer is that of this moment.
        let own = self.screen.answer(&**self, query);
        let answer = self.change(now, |state| {
            let by = state.viewers.in_control().map(viewer);
            state.queries.ask(query, state.output.log().last_seq(), by, own, now)
        });
        if let Some(answer) = answer {
            self.answer(answer);
        }
    }

    /// Types an answer. Of a program that reads nothing, answers do not pile up.
    pub(super) fn answer(&self, answer: Bytes) {
        if let Ok(engine) = self.live() {
            engine.answer(answer);
        }
    }
}
