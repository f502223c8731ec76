//! Open permission questions of agents.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use protocol::workspace::{PermissionId, SessionId, client::PermissionRequest};
use serde_json::Value;

/// The most open questions of a session. Beyond it, the oldest are dropped: new viewers do not get
/// them, and clients cannot answer them any more.
const MOST: usize = 64;

#[derive(Default)]
pub(crate) struct Questions(VecDeque<Question>);

struct Question {
    /// The engine's id of the question.
    engine_id: String,
    request: PermissionRequest,
}

/// The id for clients that belongs to an engine's id. It is derived from the engine's id, so it stays the same if the
/// engine asks again after a restart.
fn of_engine(engine_id: &str) -> PermissionId {
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, engine_id).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    PermissionId::from_random(half(0) << 64 | half(1))
}

impl Questions {
    /// Adds a question, and returns the message for clients.
    pub(crate) fn ask(
        &mut self,
        session_id: SessionId,
        engine_id: String,
        tool: String,
        input: Value,
    ) -> PermissionRequest {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        let request_id = engine_id.parse().unwrap_or_else(|_| of_engine(&engine_id));
        let request = PermissionRequest { session_id, request_id, tool, input };
        self.0.push_back(Question { engine_id, request: request.clone() });
        request
    }

    /// The engine's id of the open question that has this id for clients.
    pub(crate) fn engine_id(&self, id: &str) -> Option<String> {
        let id: PermissionId = id.parse().ok()?;
        let question = self.0.iter().find(|question| question.request.request_id == id);
        question.map(|question| question.engine_id.clone())
    }

    /// Removes an answered question by the engine's id, and returns the clients' id.
    pub(crate) fn take(&mut self, engine_id: &str) -> Option<PermissionId> {
        let at = self.0.iter().position(|question| question.engine_id == engine_id)?;
        self.0.remove(at).map(|question| question.request.request_id)
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = PermissionRequest> + '_ {
        self.0.iter().map(|question| question.request.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(questions: &mut Questions, engine_id: &str) -> PermissionRequest {
        questions.ask(
            SessionId::from_random(1),
            engine_id.to_owned(),
            "Bash".to_owned(),
            Value::Null,
        )
    }

    #[test]
    fn a_question_is_found_by_the_id_that_clients_know_and_ends_once() {
        let mut questions = Questions::default();
        let question = ask(&mut questions, "toolu_1");
        assert_eq!(
            questions.engine_id(&question.request_id.to_string()).as_deref(),
            Some("toolu_1")
        );
        assert_eq!(questions.open().count(), 1);
        assert_eq!(questions.take("toolu_1"), Some(question.request_id));
        assert_eq!(questions.take("toolu_1"), None);
        assert_eq!(questions.engine_id(&question.request_id.to_string()), None);
    }

    #[test]
    fn an_id_that_clients_can_use_stays() {
        let id = "550e8400-e29b-41d4-a716-446655440000";
        assert_eq!(ask(&mut Questions::default(), id).request_id.to_string(), id);
    }

    #[test]
    fn no_more_are_open_than_the_bound() {
        let mut questions = Questions::default();
        (0..=MOST).for_each(|number| drop(ask(&mut questions, &number.to_string())));
        assert_eq!(questions.open().count(), MOST);
        assert_eq!(questions.take("0"), None);
    }
}
