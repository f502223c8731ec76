//! News for a leader's agent: its delivery, and its repetition after a restart.
//!
//! News has two sources. The first are messages of members to the leader. A message counts as seen
//! when the leader's turn with it is over. So it is delivered again if the daemon died during that
//! turn. The second are results of the team workers to which the leader's agent itself gave work.
//! Each result is news until the agent has heard of it, by a wait or by a prompt.

use std::{collections::BTreeMap, sync::Arc};

use uuid::Uuid;

use super::{
    Effect, Finished, Membership, TeamError, Teams, effect::Out, member::Member, record::Key,
};

impl Teams {
    /// Notes that the leader's agent itself gave work to this team worker: it must hear of each
    /// result.
    ///
    /// # Errors
    /// When this is not a team worker of this team.
    pub fn works_for_leader(&mut self, team: Uuid, worker: Uuid) -> Result<Vec<Effect>, TeamError> {
        self.team(team)?.worker(worker)?;
        let mut out = Out::default();
        let membership = Membership { team, session: worker };
        if let Some(member) = self.member_mut(membership) {
            member.record.for_leader = true;
            out.change(Key::member(team, worker));
        }
        self.note_news(membership);
        Ok(self.finish(out))
    }

    /// The newest results that leaders have not heard of, by leader.
    pub fn news(&self) -> BTreeMap<Uuid, Vec<Finished>> {
        let mut news: BTreeMap<Uuid, Vec<Finished>> = BTreeMap::new();
        for &(team, worker) in &self.unheard {
            let Some(found) = self.teams.get(&team).filter(|team| team.is_active()) else {
                continue;
            };
            let Some(result) = found.newest_result(worker) else { continue };
            let (number, success) = (result.number, result.success);
            let result = Arc::clone(&result.text);
            let of_leader = news.entry(found.record.leader).or_default();
            of_leader.push(Finished { worker, number, success, result });
        }
        news
    }

    /// Notes that the leader has heard of this result of a team worker, and thereby of all earlier
    /// ones. Repeating the call has no effect.
    pub fn heard(&mut self, worker: Uuid, number: u64) -> Vec<Effect> {
        let mut out = Out::default();
        let membership =
            self.team_of.get(&worker).map(|&team| Membership { team, session: worker });
        if let Some(membership) = membership
            && let Some(member) =
                self.member_mut(membership).filter(|member| member.record.heard < number)
        {
            // A number beyond that of the newest result would hide a later result.
            member.record.heard = number.min(member.record.results);
            out.change(Key::member(membership.team, worker));
            self.note_news(membership);
        }
        self.finish(out)
    }

    /// The leader of this team worker, if the leader is in a turn.
    pub fn leader_at_work(&self, worker: Uuid) -> Option<Uuid> {
        let team = self.teams.get(self.team_of.get(&worker)?)?;
        let leader = team.living(team.record.leader).ok()?;
        leader.record.turn.map(|_| team.record.leader)
    }

    /// Updates whether this team worker has a result that its leader has not heard of.
    pub(super) fn note_news(&mut self, membership: Membership) {
        let of = (membership.team, membership.session);
        match self.member_mut(membership).is_some_and(|member| member.is_news()) {
            true => self.unheard.insert(of),
            false => self.unheard.remove(&of),
        };
    }

    /// Updates for all team workers whether they have such a result.
    pub(super) fn note_all_news(&mut self) {
        let members = self.teams.iter().flat_map(|(team, found)| {
            let news = found.workers().filter(|member| member.is_news());
            news.map(move |member| (*team, member.record.session))
        });
        self.unheard = members.collect();
    }

    /// Notes that a turn of a leader begins.
    pub(super) fn note_leader_turn_started(&mut self, session: Uuid, turn: u64, out: &mut Out) {
        let Some(membership) = self.leader_membership(session) else { return };
        if let Some(member) =
            self.member_mut(membership).filter(|member| turn > member.record.last_turn)
        {
            member.record.start(turn);
            out.change(Key::member(membership.team, membership.session));
        }
    }

    /// Notes that a turn of a leader ended: the leader has seen all messages that had reached it.
    pub(super) fn note_leader_turn_ended(&mut self, session: Uuid, turn: u64, out: &mut Out) {
        let Some(membership) = self.leader_membership(session) else { return };
        let Some(member) = self.member_mut(membership) else { return };
        if member.record.turn.take_if(|open| open.number <= turn).is_some() {
            member.record.answered = member.record.reached;
            out.change(Key::member(membership.team, membership.session));
        }
    }

    /// Queues again the messages that reached a leader in a turn that ended with the daemon's death.
    pub(super) fn hand_again(&mut self, membership: Membership, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&membership.team) else { return };
        let Some(member) =
            team.members.get_mut(&membership.session).filter(|member| !member.is_gone())
        else {
            return;
        };
        let was_open = member.record.turn.take().is_some();
        if !was_open && member.record.reached <= member.record.answered {
            return;
        }
        let (from, until) = (member.record.answered, member.record.reached);
        let later = team.messages.range(from + 1..).take_while(|(seq, _)| **seq <= until);
        let lost = later.filter(|(_, message)| message.to.contains(&membership.session));
        let lost: Vec<u64> = lost.map(|(seq, _)| *seq).collect();
        member.waiting.extend(lost);
        // Taken back to the newest message that was seen, so that the later ones are delivered in order again.
        member.record.reached = from;
        out.change(Key::member(membership.team, membership.session));
    }

    fn leader_membership(&self, session: Uuid) -> Option<Membership> {
        let team = *self.team_of.get(&session)?;
        let found = self.teams.get(&team)?;
        (found.record.leader == session && found.is_active())
            .then_some(Membership { team, session })
    }
}

impl Member {
    /// Whether the newest result is one that the leader's agent must hear of and has not heard of
    /// yet.
    fn is_news(&self) -> bool {
        self.record.for_leader && self.record.results > self.record.heard
    }
}
