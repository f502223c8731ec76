//! Members whose sessions other machines run. Such a machine keeps an [outpost](super::outpost): it
//! numbers its reports about each session and repeats them until they are acknowledged. So the
//! machine of the team's owner takes each report once, and in order.

use protocol::workspace::TurnOutcome;
use uuid::Uuid;

use super::{Effect, FinishedTurn, Membership, Teams, effect::Out, outpost::Report, record::Key};

impl Teams {
    /// The node id of the machine that runs a member's session; `None` if it is this machine.
    pub fn node_of(&self, session: Uuid) -> Option<&str> {
        let team = self.teams.get(self.team_of.get(&session)?)?;
        team.members.get(&session)?.record.node.as_deref()
    }

    /// The sessions that the machine `node` runs for the teams, without those that have ended.
    pub fn sessions_at(&self, node: &str) -> Vec<Uuid> {
        self.elsewhere().filter(|(_, at)| *at == node).map(|(session, _)| session).collect()
    }

    /// The node ids of the other machines that run sessions for the teams.
    pub fn nodes(&self) -> Vec<String> {
        let nodes: std::collections::BTreeSet<_> = self.elsewhere().map(|(_, node)| node).collect();
        nodes.into_iter().map(str::to_owned).collect()
    }

    /// Takes the report with this number about a session that another machine runs. A report that
    /// was taken before, or is about a session that is in no team, has no effect.
    pub fn reported(&mut self, session: Uuid, number: u64, report: Report, at: u64) -> Vec<Effect> {
        let Some(&team) = self.team_of.get(&session) else { return Vec::new() };
        let membership = Membership { team, session };
        let member = self.member_mut(membership);
        let Some(member) = member.filter(|member| member.record.reports < number) else {
            return Vec::new();
        };
        member.record.reports = number;
        let mut out = Out::default();
        out.change(Key::member(team, session));
        let mut effects = self.apply(membership, report, at, &mut out);
        effects.extend(self.finish(out));
        // The effects of two calls were joined: those to keep must come first.
        effects.sort_by_key(|effect| !matches!(effect, Effect::Keep(_)));
        effects
    }

    fn apply(
        &mut self,
        membership: Membership,
        report: Report,
        at: u64,
        out: &mut Out,
    ) -> Vec<Effect> {
        match report {
            Report::Begun { seq } => {
                self.reach_once(membership, seq, out);
                Vec::new()
            }
            Report::Started { turn } => self.turn_started(membership.session, turn, at),
            Report::Ended { turn, completed, text } => {
                let outcome = match completed {
                    true => TurnOutcome::Completed,
                    false => TurnOutcome::Failed,
                };
                self.turn_ended(membership.session, FinishedTurn { turn, outcome, text }, at)
            }
            Report::Stopped => {
                self.fail_begun(membership, at, out);
                Vec::new()
            }
            Report::Gone => self.session_gone(membership.session, at),
        }
    }

    /// Notes that a message has reached its session, whether or not the message was offered since this
    /// machine's start.
    fn reach_once(&mut self, membership: Membership, seq: u64, out: &mut Out) {
        let member = self.member_mut(membership);
        let is_new = member.is_some_and(|member| !member.is_gone() && seq > member.record.reached);
        if is_new {
            self.reach(membership, seq, out);
        }
    }

    fn elsewhere(&self) -> impl Iterator<Item = (Uuid, &str)> {
        let members = self.teams.values().flat_map(|team| team.members.values());
        let living = members.filter(|member| !member.is_gone());
        living.filter_map(|member| Some((member.record.session, member.record.node.as_deref()?)))
    }
}
