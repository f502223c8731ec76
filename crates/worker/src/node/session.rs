//! The tasks of one connection of a node (pure): frames in, actions out.

use protocol::node::{ServerMessage, Stop, Task};

/// An action of the connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Begin this task, in place of one that was carried over.
    Start(Task),
    /// Stop the running task, and send nothing more of it.
    Stop,
}

/// The one task that a connection may have. A task that cannot be accepted is only logged; the server ends
/// it by its own time-out.
#[derive(Debug, Default)]
pub(super) struct TaskSession {
    running: Option<i32>,
    /// Whether the running task came over an earlier connection.
    carried: bool,
    draining: bool,
}

impl TaskSession {
    /// Whether a task runs.
    pub(super) fn is_busy(&self) -> bool {
        self.running.is_some()
    }

    /// The id of the running task.
    pub(super) fn running(&self) -> Option<i32> {
        self.running
    }

    /// Takes nothing new from now on.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// The connection is gone, and its task goes on. If the server sends another task over the next
    /// connection, it has given this task up.
    pub(super) fn carry(&mut self) {
        self.carried = true;
    }

    /// The running task has ended.
    pub(super) fn ended(&mut self) {
        self.running = None;
    }

    /// Handles a text frame of the server.
    pub(super) fn on_text(&mut self, text: &str) -> Option<Action> {
        match ServerMessage::decode(text) {
            Ok(ServerMessage::Task(task)) => self.on_task(task),
            Ok(ServerMessage::Stop(stop)) => self.on_stop(stop),
            Err(bad) => {
                tracing::warn!(task = bad.id, "{bad}; it was ignored");
                None
            }
        }
    }

    fn on_task(&mut self, task: Task) -> Option<Action> {
        if let Some(why) = self.reason_to_ignore(&task) {
            tracing::warn!(task = task.id, "a task was not processed: {why}");
            return None;
        }
        self.running = Some(task.id);
        self.carried = false;
        Some(Action::Start(task))
    }

    fn reason_to_ignore(&self, task: &Task) -> Option<&'static str> {
        match self.running {
            _ if task.state != Task::PENDING => Some("it is not pending"),
            Some(id) if id == task.id => Some("it is running already"),
            Some(_) if !self.carried => {
                Some("another one is running, and this connection takes one at a time")
            }
            _ => self.draining.then_some("this worker is ending"),
        }
    }

    fn on_stop(&mut self, stop: Stop) -> Option<Action> {
        if self.running != Some(stop.id) {
            tracing::debug!(task = stop.id, "a task that does not run is to be stopped");
            return None;
        }
        self.running = None;
        Some(Action::Stop)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn task(id: i32, state: i64) -> String {
        format!(r#"{{"state":{state},"id":{id},"system":"","messages":["hi"]}}"#)
    }

    #[track_caller]
    fn started(action: Option<Action>) -> i32 {
        match action {
            Some(Action::Start(task)) => task.id,
            other => panic!("{other:?}"),
        }
    }

    fn busy_with(id: i32) -> TaskSession {
        let mut session = TaskSession::default();
        started(session.on_text(&task(id, 0)));
        session
    }

    #[test]
    fn one_task_runs_at_a_time() {
        let mut session = busy_with(7);
        assert_eq!(session.on_text(&task(8, 0)), None, "a second one");
        assert_eq!(session.on_text(&task(7, 0)), None, "the same again");
        assert_eq!(session.running(), Some(7));
        session.ended();
        assert_eq!(started(session.on_text(&task(7, 0))), 7, "its id is free again");
    }

    #[test]
    fn a_new_task_takes_the_place_of_one_that_was_carried_over() {
        let mut session = busy_with(7);
        session.carry();
        assert_eq!(session.on_text(&task(7, 0)), None, "the same again");
        assert_eq!(started(session.on_text(&task(8, 0))), 8);
        assert_eq!(session.on_text(&task(9, 0)), None, "that one is of this connection");
        assert_eq!(session.on_text(r#"{"id":7,"stop":true}"#), None);
        assert_eq!(session.running(), Some(8));
    }

    #[test]
    fn a_task_that_is_not_pending_is_ignored() {
        for state in [1, -1, 2] {
            assert_eq!(TaskSession::default().on_text(&task(1, state)), None, "{state}");
        }
    }

    #[test]
    fn only_the_task_that_runs_can_be_stopped_and_makes_room() {
        let mut session = busy_with(7);
        assert_eq!(session.on_text(r#"{"id":8,"stop":true}"#), None);
        assert_eq!(session.on_text(r#"{"id":7,"stop":false}"#), None);
        assert_eq!(session.on_text(r#"{"id":7,"stop":true}"#), Some(Action::Stop));
        assert_eq!(session.on_text(r#"{"id":7,"stop":true}"#), None, "it was stopped already");
        assert_eq!(started(session.on_text(&task(8, 0))), 8);
    }

    #[test]
    fn nonsense_is_ignored() {
        let mut session = busy_with(7);
        for text in ["", "no json", "[]", "{}", r#"{"id":"x"}"#, r#"{"id":9,"messages":[1]}"#] {
            assert_eq!(session.on_text(text), None, "{text}");
        }
        assert!(session.is_busy());
    }

    #[test]
    fn a_draining_connection_takes_no_new_task_and_can_still_be_stopped() {
        let mut session = busy_with(7);
        session.drain();
        assert_eq!(session.on_text(r#"{"id":7,"stop":true}"#), Some(Action::Stop));
        assert_eq!(session.on_text(&task(8, 0)), None);
        assert!(!session.is_busy());
    }

    proptest! {
        /// Against a list of what runs: a start only when nothing does, a stop only of what does.
        #[test]
        fn never_more_than_one(steps in proptest::collection::vec((0..3u8, 0..4i32), 0..40)) {
            let mut session = TaskSession::default();
            let mut running = Vec::new();
            for (kind, id) in steps {
                match kind {
                    0 => if let Some(Action::Start(task)) = session.on_text(&task(id, 0)) {
                        running.push(task.id);
                    },
                    1 => if session.on_text(&format!(r#"{{"id":{id},"stop":true}}"#)).is_some() {
                        prop_assert_eq!(running.pop(), Some(id));
                    },
                    _ => {
                        session.ended();
                        running.clear();
                    }
                }
                prop_assert!(running.len() <= 1);
                prop_assert_eq!(session.running(), running.first().copied());
            }
        }
    }
}
