//! The turn of an agent that answers a prompt, and how it ends.

use std::collections::VecDeque;

use anyhow::bail;
use client::workspace::{Ending, SessionView};
use protocol::workspace::{AgentEvent, SessionInfo, SessionStatus, TurnOutcome};
use tokio::time::Instant;

use crate::commands::{
    table::plain,
    workspace::{short, terms::called},
};

/// The most events that are kept until the prompt is acknowledged. Of more, the oldest are dropped: they are most
/// likely of an earlier turn.
const MOST_EARLY: usize = 4096;

/// The output of the turn.
#[derive(Debug, PartialEq)]
pub(super) enum TurnOutput {
    Event(AgentEvent),
    Aside(String),
}

/// The turn that answers a prompt.
pub(super) struct OwnTurn<'a> {
    session: &'a SessionInfo,
    which: Which,
    /// The events that came before the number of the turn was known.
    early: VecDeque<AgentEvent>,
    has_begun: bool,
    ended: Option<Result<(), String>>,
    /// Whether the connection is a new one, over which the state of the session has not come yet.
    is_back: bool,
    rests_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
enum Which {
    /// The prompt has not been taken yet.
    Unknown,
    /// The turn with this number.
    Number(u64),
    /// The server did not say which: the first turn that begins after a running one has ended.
    Next { waits: bool },
}

impl<'a> OwnTurn<'a> {
    /// The turn of a prompt that will be sent to this session.
    pub(super) const fn of(session: &'a SessionInfo) -> Self {
        Self {
            session,
            which: Which::Unknown,
            early: VecDeque::new(),
            has_begun: false,
            ended: None,
            is_back: false,
            rests_since: None,
        }
    }

    /// The end of the turn, once it has ended.
    pub(super) fn ended(&mut self) -> Option<Result<(), String>> {
        self.ended.take()
    }

    /// Since when a server that came back has reported the agent as idle.
    pub(super) const fn rests_since(&self) -> Option<Instant> {
        self.rests_since
    }

    /// Takes what a view of the session shows about the turn.
    pub(super) fn take(
        &mut self,
        seen: SessionView,
        now: Instant,
    ) -> anyhow::Result<Vec<TurnOutput>> {
        let name = || called(self.session);
        let aside = match seen {
            SessionView::Event(event) => return Ok(self.heard(event).into_iter().collect()),
            SessionView::Taken { turn } => return Ok(self.taken(turn)),
            SessionView::Used(usage) => return Ok(self.used(usage.turn).into_iter().collect()),
            SessionView::Permission(request) => format!(
                "{} asks whether it may use {}: warren session attach {} answers",
                name(),
                plain(&request.tool),
                short(self.session.id),
            ),
            SessionView::Lost(words) => format!("{words}; trying again"),
            SessionView::Notice(notice) => notice.message,
            SessionView::Refused(words) => bail!("{words}"),
            SessionView::Ended(Ending::Exited { .. }) => bail!("{} has ended", name()),
            SessionView::Ended(Ending::Killed) => bail!("{} was killed", name()),
            SessionView::Back => {
                self.is_back = true;
                return Ok(Vec::new());
            }
            SessionView::Status(session) => {
                let is_first = std::mem::take(&mut self.is_back);
                if is_first && session.status == SessionStatus::Idle {
                    self.rests_since = Some(now);
                }
                return Ok(Vec::new());
            }
            _ => return Ok(Vec::new()),
        };
        Ok(vec![TurnOutput::Aside(aside)])
    }

    fn taken(&mut self, turn: Option<u64>) -> Vec<TurnOutput> {
        let waits = self.session.status == SessionStatus::Running;
        self.which = turn.map_or(Which::Next { waits }, Which::Number);
        let early = std::mem::take(&mut self.early);
        early.into_iter().filter_map(|event| self.heard(event)).collect()
    }

    fn heard(&mut self, event: AgentEvent) -> Option<TurnOutput> {
        self.rests_since = None;
        match (self.which, &event) {
            (Which::Unknown, _) => {
                if self.early.len() >= MOST_EARLY {
                    self.early.pop_front();
                }
                self.early.push_back(event);
                return None;
            }
            (Which::Next { .. }, AgentEvent::TurnEnded { .. }) => {
                self.which = Which::Next { waits: false };
            }
            (Which::Next { waits: false }, AgentEvent::TurnStarted { turn, .. }) => {
                (self.which, self.has_begun) = (Which::Number(*turn), true);
            }
            (Which::Number(own), AgentEvent::TurnStarted { turn, .. }) if *turn == own => {
                self.has_begun = true;
            }
            (Which::Number(own), AgentEvent::TurnStarted { turn, .. }) if *turn > own => {
                return self.was_missed();
            }
            (Which::Number(own), AgentEvent::TurnEnded { turn, outcome, error, .. })
                if *turn == own =>
            {
                self.has_begun = true;
                self.ended = Some(ended(*outcome, error.as_deref()));
            }
            _ => {}
        }
        self.has_begun.then_some(TurnOutput::Event(event))
    }

    /// The turn's usage. It is reported even to a viewer that fell behind and has missed its end.
    fn used(&mut self, turn: u64) -> Option<TurnOutput> {
        match self.which {
            Which::Number(own) if turn >= own && self.ended.is_none() => self.was_missed(),
            _ => None,
        }
    }

    fn was_missed(&mut self) -> Option<TurnOutput> {
        self.ended = Some(Ok(()));
        let id = short(self.session.id);
        let words = format!("some of the answer was missed: warren session history {id} has it");
        Some(TurnOutput::Aside(words))
    }
}

fn ended(outcome: TurnOutcome, error: Option<&str>) -> Result<(), String> {
    match outcome {
        TurnOutcome::Completed => Ok(()),
        TurnOutcome::Interrupted => Err("the turn was interrupted".to_owned()),
        TurnOutcome::Failed => {
            Err(format!("the turn failed: {}", error.unwrap_or("the agent does not say why")))
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{SessionId, client::Usage};

    use super::{super::tests::session, *};

    fn started(turn: u64) -> SessionView {
        SessionView::Event(AgentEvent::TurnStarted { turn, prompt: None })
    }

    fn said(text: &str) -> SessionView {
        SessionView::Event(AgentEvent::Text { text: text.to_owned(), delta: false, unasked: false })
    }

    fn ended(turn: u64, outcome: TurnOutcome) -> SessionView {
        SessionView::Event(AgentEvent::TurnEnded { turn, outcome, error: None, text: None })
    }

    fn done(turn: u64) -> SessionView {
        ended(turn, TurnOutcome::Completed)
    }

    /// The answer of the turn, and how it ended.
    fn answer(
        status: SessionStatus,
        seen: Vec<SessionView>,
    ) -> (Vec<String>, Option<Result<(), String>>) {
        let session = SessionInfo { status, ..session() };
        let mut own = OwnTurn::of(&session);
        let heard = seen.into_iter().flat_map(|seen| own.take(seen, Instant::now()).unwrap());
        let said = heard.filter_map(|heard| match heard {
            TurnOutput::Event(AgentEvent::Text { text, .. }) => Some(text),
            TurnOutput::Event(_) => None,
            TurnOutput::Aside(words) => Some(words),
        });
        (said.collect(), own.ended())
    }

    fn mine() -> (Vec<String>, Option<Result<(), String>>) {
        (vec!["mine".to_owned()], Some(Ok(())))
    }

    #[test]
    fn the_turn_that_the_server_names_answers_whoever_else_is_before_it() {
        let seen = |taken: usize| {
            let mut seen = vec![
                said("of before"),
                done(1),
                started(2),
                said("another's"),
                done(2),
                started(3),
                said("mine"),
                done(3),
            ];
            seen.insert(taken, SessionView::Taken { turn: Some(3) });
            seen
        };
        // The acknowledgement goes another way than events do.
        for taken in 0..=8 {
            assert_eq!(answer(SessionStatus::Running, seen(taken)), mine(), "{taken}");
        }
    }

    #[test]
    fn no_more_events_are_kept_before_the_acknowledgement_than_the_bound() {
        let session = session();
        let mut own = OwnTurn::of(&session);
        for _ in 0..2 * MOST_EARLY {
            own.take(said("of before"), Instant::now()).unwrap();
        }
        assert_eq!(own.early.len(), MOST_EARLY);
        for seen in [started(3), done(3)] {
            own.take(seen, Instant::now()).unwrap();
        }
        own.take(SessionView::Taken { turn: Some(3) }, Instant::now()).unwrap();
        assert_eq!(own.ended(), Some(Ok(())));
    }

    #[test]
    fn where_the_server_names_none_it_is_the_one_after_what_runs() {
        let own = || vec![started(2), said("mine"), done(2)];
        let before = vec![SessionView::Taken { turn: None }, said("of before"), done(1)];
        assert_eq!(
            answer(SessionStatus::Running, [before, own()].into_iter().flatten().collect()),
            mine()
        );
        let taken = vec![SessionView::Taken { turn: None }];
        assert_eq!(
            answer(SessionStatus::Idle, [taken, own()].into_iter().flatten().collect()),
            mine()
        );
    }

    #[test]
    fn a_turn_that_fails_is_a_failure() {
        for outcome in [TurnOutcome::Failed, TurnOutcome::Interrupted] {
            let seen = vec![SessionView::Taken { turn: Some(1) }, started(1), ended(1, outcome)];
            assert!(matches!(answer(SessionStatus::Idle, seen).1, Some(Err(_))));
        }
        let session = session();
        let mut own = OwnTurn::of(&session);
        assert!(own.take(SessionView::Ended(Ending::Killed), Instant::now()).is_err());
        assert!(
            own.take(SessionView::Refused("32 prompts wait".to_owned()), Instant::now()).is_err()
        );
    }

    #[test]
    fn a_client_that_missed_the_turns_end_does_not_wait_for_it() {
        let used = |turn| {
            let session_id = SessionId::from_random(1);
            let usage =
                Usage { session_id, turn, input_tokens: 1, output_tokens: 1, cost_usd: None };
            SessionView::Used(usage)
        };
        for later in [used(2), started(3)] {
            let seen = vec![SessionView::Taken { turn: Some(2) }, used(1), later];
            let (said, ended) = answer(SessionStatus::Idle, seen);
            assert!(said.len() == 1 && said[0].contains("missed"), "{said:?}");
            assert_eq!(ended, Some(Ok(())));
        }
    }

    #[test]
    fn an_agent_that_rests_after_a_loss_is_not_waited_for_unless_it_says_something() {
        let session = session();
        let mut own = OwnTurn::of(&session);
        let now = Instant::now();
        let mut take = |seen| {
            own.take(seen, now).unwrap();
            own.rests_since()
        };
        let status =
            |status| SessionView::Status(Box::new(SessionInfo { status, ..session.clone() }));
        assert_eq!(take(status(SessionStatus::Idle)), None);
        take(SessionView::Back);
        assert_eq!(take(status(SessionStatus::Running)), None);
        assert_eq!(take(status(SessionStatus::Idle)), None, "its turn has just ended");
        take(SessionView::Back);
        assert_eq!(take(status(SessionStatus::Idle)), Some(now));
        assert_eq!(take(said("more")), None);
    }
}
