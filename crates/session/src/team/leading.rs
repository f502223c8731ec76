//! News for a leader's agent: its delivery, and its repetition after a restart.
//!
//! News has two sources. The first are messages of members to the leader: one counts as told when
//! the leader's turn with it is over, so a message whose turn ended with the daemon's death is
//! delivered again. The second are results of the team workers to which the leader's agent itself
//! gave work: each is news until the agent has heard of it, by a wait or by a prompt.

use std::{collections::BTreeMap, sync::Arc};

use uuid::Uuid;

use super::{
    Effect, Finished, Membership, TeamError, Teams, effect::Out, member::Seat, record::Key,
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
        let place = Membership { team, session: worker };
        if let Some(seat) = self.seat_mut(place) {
            seat.kept.for_leader = true;
            out.change(Key::member(team, worker));
        }
        self.note_news(place);
        Ok(self.finish(out))
    }

    /// The newest results that leaders have not heard of, by leader.
    pub fn news(&self) -> BTreeMap<Uuid, Vec<Finished>> {
        let mut news: BTreeMap<Uuid, Vec<Finished>> = BTreeMap::new();
        for &(team, worker) in &self.untold {
            let Some(found) = self.teams.get(&team).filter(|team| team.is_active()) else {
                continue;
            };
            let Some(result) = found.newest_result(worker) else { continue };
            let (number, success) = (result.number, result.success);
            let result = Arc::clone(&result.text);
            let of_leader = news.entry(found.kept.leader).or_default();
            of_leader.push(Finished { worker, number, success, result });
        }
        news
    }

    /// Notes that the leader has heard of this result of a team worker, and thereby of all earlier
    /// ones. Repeating the call has no effect.
    pub fn heard(&mut self, worker: Uuid, number: u64) -> Vec<Effect> {
        let mut out = Out::default();
        let place = self.team_of.get(&worker).map(|&team| Membership { team, session: worker });
        if let Some(place) = place
            && let Some(seat) = self.seat_mut(place).filter(|seat| seat.kept.heard < number)
        {
            seat.kept.heard = number.min(seat.kept.results);
            out.change(Key::member(place.team, worker));
            self.note_news(place);
        }
        self.finish(out)
    }

    /// The leader of this team worker, if the leader is in a turn.
    pub fn leader_at_work(&self, worker: Uuid) -> Option<Uuid> {
        let team = self.teams.get(self.team_of.get(&worker)?)?;
        let leader = team.living(team.kept.leader).ok()?;
        leader.kept.turn.map(|_| team.kept.leader)
    }

    /// Updates whether this team worker has a result that its leader has not heard of.
    pub(super) fn note_news(&mut self, place: Membership) {
        let of = (place.team, place.session);
        match self.seat_mut(place).is_some_and(|seat| seat.is_news()) {
            true => self.untold.insert(of),
            false => self.untold.remove(&of),
        };
    }

    /// Updates the same for all team workers.
    pub(super) fn note_all_news(&mut self) {
        let seats = self.teams.iter().flat_map(|(team, found)| {
            let news = found.workers().filter(|seat| seat.is_news());
            news.map(move |seat| (*team, seat.kept.session))
        });
        self.untold = seats.collect();
    }

    /// Notes that a turn of a leader begins.
    pub(super) fn leads_on(&mut self, session: Uuid, turn: u64, out: &mut Out) {
        let Some(place) = self.place_of_leader(session) else { return };
        if let Some(seat) = self.seat_mut(place).filter(|seat| turn > seat.kept.last_turn) {
            seat.kept.start(turn);
            out.change(Key::member(place.team, place.session));
        }
    }

    /// Notes that a turn of a leader ended: the leader was told all messages that had reached it.
    pub(super) fn has_led(&mut self, session: Uuid, turn: u64, out: &mut Out) {
        let Some(place) = self.place_of_leader(session) else { return };
        let Some(seat) = self.seat_mut(place) else { return };
        if seat.kept.turn.take_if(|open| open.number <= turn).is_some() {
            seat.kept.answered = seat.kept.reached;
            out.change(Key::member(place.team, place.session));
        }
    }

    /// Queues the messages to a leader again whose turn ended with the daemon's death.
    pub(super) fn hand_again(&mut self, place: Membership, out: &mut Out) {
        let Some(team) = self.teams.get_mut(&place.team) else { return };
        let Some(seat) = team.seats.get_mut(&place.session).filter(|seat| !seat.is_gone()) else {
            return;
        };
        let was_open = seat.kept.turn.take().is_some();
        if !was_open && seat.kept.reached <= seat.kept.answered {
            return;
        }
        let (from, until) = (seat.kept.answered, seat.kept.reached);
        let later = team.messages.range(from + 1..).take_while(|(seq, _)| **seq <= until);
        let lost = later.filter(|(_, message)| message.to.contains(&place.session));
        let lost: Vec<u64> = lost.map(|(seq, _)| *seq).collect();
        seat.waiting.extend(lost);
        seat.kept.reached = from;
        out.change(Key::member(place.team, place.session));
    }

    fn place_of_leader(&self, session: Uuid) -> Option<Membership> {
        let team = *self.team_of.get(&session)?;
        let found = self.teams.get(&team)?;
        (found.kept.leader == session && found.is_active()).then_some(Membership { team, session })
    }
}

impl Seat {
    /// Whether the newest result is one that the leader's agent must hear of and has not heard of
    /// yet.
    fn is_news(&self) -> bool {
        self.kept.for_leader && self.kept.results > self.kept.heard
    }
}
