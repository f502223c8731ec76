//! The result of each turn of a team worker: exactly one, delivered once.

use std::sync::Arc;

use protocol::workspace::TurnOutcome;
use uuid::Uuid;

use super::{
    Called, Effect, Membership, TeamError, Teams, check_length,
    effect::Out,
    member::Member,
    record::{Key, TeamResult},
};

/// A result may always have this many bytes, even if the teams hold all that they may.
const SHORT: usize = 16 << 10;
/// The mark at the end of a cut text.
const CUT: &str = "\n[cut: the result was too long]";

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedTurn {
    /// The number of the turn, ascending for each session.
    pub turn: u64,
    /// Its outcome.
    pub outcome: TurnOutcome,
    /// The agent's final answer, or the error.
    pub text: String,
}

/// A team worker's own report of its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Whether the work succeeded.
    pub success: bool,
    /// The text of the result.
    pub result: String,
}

/// A result before it is stored.
struct UnstoredResult {
    turn: Option<u64>,
    answers: u64,
    success: bool,
    text: String,
}

impl Teams {
    /// Notes that a turn of a session begins. The turn's result will answer the messages that were
    /// delivered before this.
    pub fn turn_started(&mut self, session: Uuid, turn: u64, at: u64) -> Vec<Effect> {
        let mut out = Out::default();
        if let Some(membership) = self.worker_membership(session) {
            self.start(membership, turn, at, &mut out);
        }
        self.note_leader_turn_started(session, turn, &mut out);
        self.finish(out)
    }

    /// Notes that a turn of a session ended. If the team worker has not reported in it, the turn's
    /// text becomes its result. Repeating the call has no effect.
    pub fn turn_ended(&mut self, session: Uuid, ended: FinishedTurn, at: u64) -> Vec<Effect> {
        let mut out = Out::default();
        if let Some(membership) = self.worker_membership(session) {
            // If the beginning of this turn was never reported, the turn begins now.
            self.start(membership, ended.turn, at, &mut out);
            self.end(membership, ended, at, &mut out);
        } else {
            self.note_leader_turn_ended(session, ended.turn, &mut out);
        }
        // A turn that ended makes room for the next message.
        self.offer_again(session, &mut out);
        self.finish(out)
    }

    /// Takes a team worker's report about its turn, or about its work if its session has no turns.
    /// Returns the result that counts: the first report of a turn; later ones are ignored.
    ///
    /// # Errors
    /// When this is not a team worker of this team, or the result is too long.
    pub fn report(
        &mut self,
        team: Uuid,
        worker: Uuid,
        report: Report,
        at: u64,
    ) -> Called<(bool, Arc<str>)> {
        self.team(team)?.worker(worker)?;
        check_length("result", report.result.len(), self.limits.result)?;
        let mut out = Out::default();
        let membership = Membership { team, session: worker };
        if self.is_new(membership, &report) {
            self.take_report(membership, report, at, &mut out);
        }
        let newest = self.team(team)?.newest_result(worker);
        let counted = newest.map(|result| (result.success, Arc::clone(&result.text)));
        Ok((counted.ok_or(TeamError::Gone(worker))?, self.finish(out)))
    }

    /// Notes that a session has ended. Its unfinished work has failed, and waits for its results
    /// end. A team whose leader has ended is inactive.
    pub fn session_gone(&mut self, session: Uuid, at: u64) -> Vec<Effect> {
        let mut out = Out::default();
        if let Some(&team) = self.team_of.get(&session) {
            self.leave(Membership { team, session }, at, &mut out);
        }
        self.finish(out)
    }

    /// Handles work that had begun when the daemon stopped: if it has no result, it has failed.
    pub(super) fn fail_begun(&mut self, membership: Membership, at: u64, out: &mut Out) {
        let Some(member) = self.member_mut(membership).filter(|member| !member.is_gone()) else {
            return;
        };
        let (owes, answers) = (member.record.owes(), member.record.reached);
        let turn = member.record.turn.take();
        if turn.is_some() {
            out.change(Key::member(membership.team, membership.session));
        }
        if owes {
            let turn = turn.filter(|turn| !turn.reported).map(|turn| turn.number);
            let text = "the daemon stopped before this was finished".to_owned();
            self.add_result(
                membership,
                UnstoredResult { turn, answers, success: false, text },
                at,
                out,
            );
        }
    }

    /// Forgets a result that is neither its team worker's newest nor part of a wait's answer.
    pub(super) fn release(&mut self, membership: Membership, number: u64, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&membership.team) else { return };
        let newest = team.members.get(&membership.session).map(|member| member.record.results);
        // The newest result is kept for later waits.
        if newest == Some(number) || self.waits.need(membership.session, number) {
            return;
        }
        if let Some(result) = team.results.remove(&(membership.session, number)) {
            self.held -= result.text.len();
            out.change(Key::result(membership.team, membership.session, number));
        }
    }

    fn worker_membership(&self, session: Uuid) -> Option<Membership> {
        let team = *self.team_of.get(&session)?;
        let found = self.teams.get(&team)?;
        let worker = found.worker(session).ok().filter(|member| !member.is_gone());
        worker.map(|_| Membership { team, session })
    }

    fn start(&mut self, membership: Membership, turn: u64, at: u64, out: &mut Out) {
        let Some(member) = self.member_mut(membership) else { return };
        // A repeated report of a turn that is known already.
        if turn <= member.record.last_turn {
            return;
        }
        if let Some(open) = member.record.turn {
            let text = "the turn was never said to have ended".to_owned();
            self.end(
                membership,
                FinishedTurn { turn: open.number, outcome: TurnOutcome::Failed, text },
                at,
                out,
            );
        }
        if let Some(member) = self.member_mut(membership) {
            member.record.start(turn);
            out.change(Key::member(membership.team, membership.session));
        }
    }

    fn end(&mut self, membership: Membership, ended: FinishedTurn, at: u64, out: &mut Out) {
        let Some(member) = self.member_mut(membership) else { return };
        let Some(turn) = member.record.turn.take_if(|turn| turn.number == ended.turn) else {
            return;
        };
        out.change(Key::member(membership.team, membership.session));
        if !turn.reported {
            let success = ended.outcome == TurnOutcome::Completed;
            let (turn, answers, text) = (Some(turn.number), turn.answers, ended.text);
            self.add_result(membership, UnstoredResult { turn, answers, success, text }, at, out);
        }
    }

    /// Whether a report is the first one about its subject. Without turns, a report is new if a
    /// message came since the last result, or if it differs from that result.
    fn is_new(&self, membership: Membership, report: &Report) -> bool {
        let Ok(team) = self.team(membership.team) else { return false };
        let Ok(member) = team.living(membership.session) else { return false };
        if member.record.last_turn > 0 {
            return member.record.owes();
        }
        let same =
            |last: &TeamResult| last.success == report.success && *last.text == *report.result;
        member.record.owes() || !team.newest_result(membership.session).is_some_and(same)
    }

    fn take_report(&mut self, membership: Membership, report: Report, at: u64, out: &mut Out) {
        let Some(member) = self.member_mut(membership) else { return };
        let turn = member.record.turn.as_mut().filter(|turn| !turn.reported);
        let about = turn.map(|turn| {
            turn.reported = true;
            (Some(turn.number), turn.answers)
        });
        let (turn, answers) = about.unwrap_or((None, member.record.reached));
        let Report { success, result: text } = report;
        self.add_result(membership, UnstoredResult { turn, answers, success, text }, at, out);
    }

    fn leave(&mut self, membership: Membership, at: u64, out: &mut Out) {
        let Some(member) = self.member_mut(membership).filter(|member| !member.is_gone()) else {
            return;
        };
        let (pending, answers) = (member.is_pending(), member.newest());
        let turn = member.record.turn.take().filter(|turn| !turn.reported).map(|turn| turn.number);
        member.record.gone_at = Some(at);
        // Nobody is left to read these messages, and a member that has ended owes no result for them.
        member.waiting.clear();
        member.offered = None;
        out.change(Key::member(membership.team, membership.session));
        out.say(Effect::Updated(membership.team));
        if pending && self.team_of(membership.session).is_some_and(|(_, leads)| !leads) {
            let text = "the session ended before it gave a result".to_owned();
            self.add_result(
                membership,
                UnstoredResult { turn, answers, success: false, text },
                at,
                out,
            );
        } else {
            self.fill(membership, out);
        }
    }

    fn add_result(
        &mut self,
        membership: Membership,
        found: UnstoredResult,
        at: u64,
        out: &mut Out,
    ) {
        // A text that is too long is cut and never refused, since each turn that ended needs its result.
        let text = self.fitted(found.text);
        let Some(member) = self.member_mut(membership) else { return };
        let number = member.note_result(found.answers);
        let UnstoredResult { turn, success, .. } = found;
        let result = TeamResult { worker: membership.session, number, turn, success, text, at };
        self.keep_result(membership, result, at, out);
        self.fill(membership, out);
        // Only after the waits have noted which results they need.
        self.release(membership, number - 1, out);
        if self.teams.get(&membership.team).is_some_and(|team| !team.any_pending()) {
            out.say(Effect::Completed(membership.team));
        }
    }

    fn keep_result(&mut self, membership: Membership, result: TeamResult, at: u64, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&membership.team) else { return };
        team.record.last_active = at;
        self.held += result.text.len();
        out.change(Key::team(membership.team));
        out.change(Key::member(membership.team, membership.session));
        out.change(Key::result(membership.team, membership.session, result.number));
        let (worker, success) = (membership.session, result.success);
        let said = Arc::clone(&result.text);
        out.say(Effect::WorkerResult { team: membership.team, worker, success, result: said });
        team.results.insert((worker, result.number), result);
        self.note_news(membership);
    }

    /// A text, cut to the longest allowed result; cut further if the teams hold nearly all that
    /// they may.
    fn fitted(&self, text: String) -> Arc<str> {
        // A short text always fits: without a result, nobody would learn that the turn is over.
        let left = self.limits.held_bytes.saturating_sub(self.held).max(SHORT);
        let max = self.limits.result.min(left);
        if text.len() <= max {
            return text.into();
        }
        let end = text.floor_char_boundary(max.saturating_sub(CUT.len()));
        format!("{}{CUT}", text.get(..end).unwrap_or_default()).into()
    }
}

impl Member {
    /// Counts one more result. Returns its number.
    fn note_result(&mut self, answers: u64) -> u64 {
        self.record.answered = self.record.answered.max(answers);
        self.record.results += 1;
        self.record.results
    }
}
