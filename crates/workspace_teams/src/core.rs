//! The machine, and the callers that wait for it.

use std::{collections::BTreeMap, time::Instant};

use ::session::team::{
    self, Answer, Caller, Effect, Finished, FinishedTurn, Limits, TeamError, Teams as Machine,
    WaitFor, Waiting, outpost::Outpost,
};
use jiff::Timestamp;
use protocol::workspace::{SessionId, TeamId, TurnOutcome};
use tokio::{sync::oneshot, time};
use uuid::Uuid;
use workspace::Refusal;

use crate::{
    news::{LOOK_AGAIN, News},
    queue::{SessionNotice, not_kept},
};

/// The machine, and the callers that wait for it.
pub(crate) struct Core {
    pub(crate) machine: Machine,
    pub(crate) outpost: Outpost,
    pub(crate) limits: Limits,
    pub(crate) news: News,
    waiting: BTreeMap<Caller, oneshot::Sender<WaitResult>>,
}

/// The outcome of a wait.
pub(crate) type WaitResult = Result<Answer, Refusal>;

/// One moment, on the monotonic clock and on the wall clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) now: Instant,
    /// In milliseconds since 1970.
    pub(crate) at: u64,
}

pub(crate) fn now() -> Moment {
    let at = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    Moment { now: time::Instant::now().into_std(), at }
}

impl Core {
    pub(crate) fn new(machine: Machine, limits: Limits) -> Self {
        let (outpost, news, waiting) = (Outpost::default(), News::default(), BTreeMap::new());
        Self { machine, outpost, limits, news, waiting }
    }

    /// Begins a wait. Its answer is sent on `waited`: at once if it is known, otherwise later.
    pub(crate) fn wait(
        &mut self,
        ask: &WaitFor,
        moment: Moment,
        waited: oneshot::Sender<WaitResult>,
    ) -> (Result<(), TeamError>, Vec<Effect>) {
        match self.machine.wait(ask, moment.now, moment.at) {
            Ok((Waiting::Answered(answer), mut effects)) => {
                effects.extend(self.heard(&results(&answer)));
                let _gone = waited.send(Ok(answer));
                (Ok(()), effects)
            }
            Ok((Waiting::Until(caller), effects)) => {
                self.waiting.insert(caller, waited);
                (Ok(()), effects)
            }
            Err(error) => (Err(error), Vec::new()),
        }
    }

    /// Applies a notice from a session, to the outpost if the session is one of the outpost's; the machine of
    /// teams does not know those.
    pub(crate) fn apply(&mut self, notice: &SessionNotice) -> Vec<Effect> {
        match notice.session() {
            Some(session) if self.outpost.has(session) => self.apply_to_outpost(notice),
            _ => self.apply_to_machine(notice),
        }
    }

    fn apply_to_outpost(&mut self, notice: &SessionNotice) -> Vec<Effect> {
        match *notice {
            SessionNotice::Begun { seq, session, .. } => self.outpost.begun(session, seq),
            SessionNotice::NotTaken { seq, session, .. } => {
                self.outpost.not_taken(session, seq);
                Vec::new()
            }
            SessionNotice::Started { session, turn, .. } => {
                self.outpost.turn_started(session, turn)
            }
            SessionNotice::Ended { session, turn, outcome, ref text, .. } => {
                let completed = outcome == TurnOutcome::Completed;
                self.outpost.turn_ended(session, turn, completed, text)
            }
            SessionNotice::Gone { session, .. } => self.outpost.gone(session),
            SessionNotice::NewsBegun { .. }
            | SessionNotice::NewsNotTaken { .. }
            | SessionNotice::Heard(_)
            | SessionNotice::Left => Vec::new(),
        }
    }

    fn apply_to_machine(&mut self, notice: &SessionNotice) -> Vec<Effect> {
        match *notice {
            SessionNotice::Begun { team, seq, session } => {
                let done = self.machine.delivered(team, seq, session);
                return done.unwrap_or_else(|error| {
                    tracing::debug!(%error, "a message was delivered that was not offered");
                    Vec::new()
                });
            }
            SessionNotice::NewsBegun { leader } => self.news.begins(leader),
            SessionNotice::NewsNotTaken { leader } => self.news.not_taken(leader, now().now),
            SessionNotice::NotTaken { team, seq, session } => {
                self.machine.not_taken(team, seq, session);
            }
            SessionNotice::Heard(ref results) => return self.heard(results),
            SessionNotice::Started { session, turn, at } => {
                return self.machine.turn_started(session, turn, at);
            }
            SessionNotice::Ended { session, turn, outcome, ref text, at } => {
                let ended = FinishedTurn { turn, outcome, text: text.clone() };
                let mut effects = self.machine.turn_ended(session, ended, at);
                for (worker, number) in self.news.heard(session) {
                    effects.extend(self.machine.heard(worker, number));
                }
                return effects;
            }
            SessionNotice::Gone { session, at } => return self.machine.session_gone(session, at),
            SessionNotice::Left => return self.let_go(),
        }
        Vec::new()
    }

    /// Notes that a wait has returned these results. If the leader is in a turn, they count as heard only
    /// when that turn ends: if the daemon dies before, the leader's agent loses what it learned in that
    /// turn.
    fn heard(&mut self, results: &[(Uuid, u64)]) -> Vec<Effect> {
        let mut effects = Vec::new();
        for &(worker, number) in results {
            match self.machine.leader_at_work(worker) {
                Some(leader) => self.news.note_result(leader, worker, number),
                None => effects.extend(self.machine.heard(worker, number)),
            }
        }
        effects
    }

    /// The results that each leader has not heard of, without leaders that have a prompt with results
    /// already or had no room a moment ago.
    pub(crate) fn unheard(&self, now: Instant) -> BTreeMap<Uuid, Vec<Finished>> {
        let mut news = self.machine.news();
        news.retain(|leader, _| self.news.may_tell(*leader, now));
        news
    }

    /// When to look again for leaders that can be given results; `None` if no leader waits for results.
    pub(crate) fn look_at(&self, now: Instant) -> Option<Instant> {
        let waits = self.machine.news().keys().any(|leader| !self.news.is_given(*leader));
        waits.then(|| now + LOOK_AGAIN)
    }

    /// Sends a caller its answer. Returns whether the caller was still there.
    pub(crate) fn answer(&mut self, caller: Caller, answer: Result<Answer, TeamError>) -> bool {
        let waited = self.waiting.remove(&caller);
        waited.is_some_and(|waited| waited.send(answer.map_err(refusal)).is_ok())
    }

    /// Fails all waits, because the machine is being rebuilt without them.
    pub(crate) fn fail_waits(&mut self, why: &str) {
        for (_, waited) in std::mem::take(&mut self.waiting) {
            let _gone = waited.send(Err(Refusal::Failed(not_kept(why))));
        }
    }

    #[cfg(test)]
    pub(crate) fn waits(&self) -> usize {
        self.waiting.len()
    }

    /// The leaders and the living team workers of all teams.
    pub(crate) fn members(&self) -> Vec<Uuid> {
        let teams = self.machine.list().into_iter();
        teams
            .flat_map(|team| {
                let workers = team.workers.into_iter().filter(|worker| worker.living);
                std::iter::once(team.leader).chain(workers.map(|worker| worker.session))
            })
            .collect()
    }

    /// The sessions that this machine runs: those of its own teams, and those of the outpost.
    pub(crate) fn sessions_here(&self) -> Vec<Uuid> {
        let members = self.members().into_iter();
        let own = members.filter(|session| self.machine.node_of(*session).is_none());
        own.chain(self.outpost.seats().map(|seat| seat.session)).collect()
    }

    /// Notes that a session may have room for messages again.
    pub(crate) fn note_room(&mut self, session: Uuid) -> Vec<Effect> {
        match self.outpost.has(session) {
            true => self.outpost.note_room(session),
            false => self.machine.note_room(session),
        }
    }

    /// Ends the waits of callers that have left.
    fn let_go(&mut self) -> Vec<Effect> {
        let gone = self.waiting.iter().filter(|(_, waited)| waited.is_closed());
        let gone: Vec<_> = gone.map(|(caller, _)| *caller).collect();
        let mut effects = Vec::new();
        for caller in gone {
            self.waiting.remove(&caller);
            effects.extend(self.machine.stop_waiting(caller));
        }
        effects
    }
}

/// The team worker and the number of each result in an answer.
pub(crate) fn results(answer: &Answer) -> Vec<(Uuid, u64)> {
    answer.finished.iter().map(|one| (one.worker, one.number)).collect()
}

/// The machine's error as the caller's refusal.
pub(crate) fn refusal(error: TeamError) -> Refusal {
    match error {
        TeamError::NoTeam(id) => Refusal::UnknownTeam(TeamId::from_uuid(id)),
        TeamError::Gone(id) => {
            Refusal::Ended(format!("{} takes part in its team no more", SessionId::from_uuid(id)))
        }
        TeamError::TooManyTeams { max } => Refusal::TooMany { what: "teams", most: max },
        other => Refusal::Invalid(other.to_string()),
    }
}

/// Separates the changes to store from the other effects.
pub(crate) fn sorted(effects: Vec<Effect>) -> (Vec<team::Change>, Vec<Effect>) {
    let (mut changes, mut rest) = (Vec::new(), Vec::new());
    for effect in effects {
        match effect {
            Effect::Keep(change) => changes.push(change),
            other => rest.push(other),
        }
    }
    (changes, rest)
}
