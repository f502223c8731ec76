//! Teams: a leader and its team workers, what they say to each other, and what comes of it.
//!
//! A plain state machine without clock, task or file. Its driver
//!
//! 1. calls one method at a time,
//! 2. makes each [`Effect::Keep`] of what that gave durable: all of them, or none,
//! 3. carries out the other effects in order, and only then acknowledges.
//!
//! When keeping fails, nothing else of that call is done: the caller and all that still wait are
//! told so, and the machine is rebuilt from the store ([`Teams::restore`],
//! [`Teams::restarted`]). A message's seq that was never acknowledged may then be given once more.
//!
//! - [`Teams`]: all teams: created, joined, listed, deleted
//! - [`record`]: what is kept; [`effect`]: what is to be done; [`error`]: why something is refused
//! - [`limits`]: how much teams may hold
//! - `inbox`: messages: sent, handed over one after the other, read again from any place
//! - `results`: what comes of each turn, once; `leading`: what a leader's agent hears of them, and of
//!   messages
//! - [`wait`]: waiting for results, resumed after a time-out; `waits`: the waits of callers
//! - `restore`: the same state after a restart
//! - `roster`: one team; `member`: one session in it

pub mod effect;
pub mod error;
mod inbox;
mod leading;
pub mod limits;
mod member;
pub mod record;
mod restore;
mod results;
mod roster;
#[cfg(test)]
mod tests;
pub mod wait;
mod waits;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use self::{effect::Out, member::Seat, record::TeamRecord, roster::Team, waits::Waits};
pub use self::{
    effect::{Change, Delivery, Effect},
    error::TeamError,
    inbox::Page,
    limits::Limits,
    record::{Key, Kind, Message, Part, Record},
    results::{FinishedTurn, Report},
    wait::{Answer, Caller, Finished, WaitFor, Waiting},
};

/// The result of a call: its answer, and the effects that come before the answer.
pub type Called<T> = Result<(T, Vec<Effect>), TeamError>;

/// All teams of a daemon.
#[derive(Debug)]
pub struct Teams {
    limits: Limits,
    teams: BTreeMap<Uuid, Team>,
    team_of: HashMap<Uuid, Uuid>,
    waits: Waits,
    /// Teams and workers with a result that the leader is to hear of, and has not.
    untold: BTreeSet<(Uuid, Uuid)>,
    /// Bytes of all messages and results.
    held: usize,
}

/// The request for a new team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTeam {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// The leader's session.
    pub leader: Uuid,
    /// The project that it works on.
    pub project: Option<Uuid>,
}

/// A team, for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamView {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// The leader's session.
    pub leader: Uuid,
    /// Its workers, in the order in which they came.
    pub workers: Vec<ShownWorker>,
    /// Whether the leader's session goes on.
    pub active: bool,
    /// When it was created, in milliseconds since 1970.
    pub created_at: u64,
    /// When something last happened in it, in milliseconds since 1970.
    pub last_active: u64,
    /// The project that it works on.
    pub project: Option<Uuid>,
}

/// A team worker, for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownWorker {
    /// Its session.
    pub session: Uuid,
    /// Whether its session goes on.
    pub living: bool,
    /// Whether a result of it is still to come.
    pub pending: bool,
}

/// A session, where its team is known.
#[derive(Debug, Clone, Copy)]
struct Membership {
    team: Uuid,
    session: Uuid,
}

impl Teams {
    /// No team is here yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            teams: BTreeMap::new(),
            team_of: HashMap::new(),
            waits: Waits::default(),
            untold: BTreeSet::new(),
            held: 0,
        }
    }

    /// Creates a team around its leader.
    ///
    /// # Errors
    /// When the id is taken, the leader is in a team, or there are too many.
    pub fn create(&mut self, new: NewTeam, at: u64) -> Result<Vec<Effect>, TeamError> {
        self.check_new(&new)?;
        let NewTeam { id, name, leader, project } = new;
        let (created_at, last_active, next_seq) = (at, at, 1);
        let kept = TeamRecord { id, name, leader, project, created_at, last_active, next_seq };
        let mut team = Team::new(kept);
        team.sit(leader, at);
        self.teams.insert(id, team);
        self.team_of.insert(leader, id);
        let mut out = Out::default();
        out.change(Key::team(id));
        out.change(Key::member(id, leader));
        out.say(Effect::Updated(id));
        Ok(self.finish(out))
    }

    /// A session joins a team as its worker.
    ///
    /// # Errors
    /// When there is no such team, its leader has ended, the session is in a team already, or there
    /// are too many workers.
    pub fn worker_joined(
        &mut self,
        team: Uuid,
        session: Uuid,
        at: u64,
    ) -> Result<Vec<Effect>, TeamError> {
        self.team(team)?.check_active()?;
        self.check_free(session)?;
        let mut out = Out::default();
        self.make_place(team, &mut out)?;
        let found = self.team_mut(team)?;
        found.sit(session, at);
        found.kept.last_active = at;
        self.team_of.insert(session, team);
        out.change(Key::team(team));
        out.change(Key::member(team, session));
        out.say(Effect::Updated(team));
        Ok(self.finish(out))
    }

    /// Deletes a team with all that is kept of it. Its sessions are to be killed; a caller that waits for
    /// it is told.
    ///
    /// # Errors
    /// When there is no such team.
    pub fn delete(&mut self, id: Uuid) -> Result<Vec<Effect>, TeamError> {
        let team = self.teams.remove(&id).ok_or(TeamError::NoTeam(id))?;
        self.held -= team.held();
        self.team_of.retain(|_, of| *of != id);
        self.untold.retain(|(of, _)| *of != id);
        let mut out = Out::default();
        out.change(Key::team(id));
        out.say(Effect::Deleted(id));
        for caller in self.waits.of_team_end(id) {
            out.say(Effect::WaitAnswered { caller, answer: Err(TeamError::Deleted(id)) });
        }
        let living = team.seats.values().filter(|seat| !seat.is_gone());
        out.say(Effect::KillSessions(living.map(|seat| seat.kept.session).collect()));
        Ok(self.finish(out))
    }

    /// A team, for clients.
    ///
    /// # Errors
    /// When there is no such team.
    pub fn get(&self, id: Uuid) -> Result<TeamView, TeamError> {
        self.team(id).map(shown)
    }

    /// All teams, the oldest first.
    pub fn list(&self) -> Vec<TeamView> {
        let mut all: Vec<_> = self.teams.values().map(shown).collect();
        all.sort_by_key(|team| (team.created_at, team.id));
        all
    }

    /// The team that a session is in, and whether it leads it.
    pub fn team_of(&self, session: Uuid) -> Option<(Uuid, bool)> {
        let team = *self.team_of.get(&session)?;
        Some((team, self.teams.get(&team)?.kept.leader == session))
    }

    fn check_new(&self, new: &NewTeam) -> Result<(), TeamError> {
        check_length("name of the team", new.name.len(), self.limits.name)?;
        let max = self.limits.teams;
        if self.teams.contains_key(&new.id) {
            return Err(TeamError::Exists(new.id));
        }
        if self.teams.len() >= max {
            return Err(TeamError::TooManyTeams { max });
        }
        self.check_free(new.leader)
    }

    fn check_free(&self, session: Uuid) -> Result<(), TeamError> {
        let taken = |team: &Uuid| Err(TeamError::AlreadyMember { session, team: *team });
        self.team_of.get(&session).map_or(Ok(()), taken)
    }

    /// Makes a place for one more worker, at the cost of one that has ended.
    fn make_place(&mut self, id: Uuid, out: &mut Out) -> Result<(), TeamError> {
        let max = self.limits.workers;
        let team = self.team_mut(id)?;
        if team.workers().count() < max {
            return Ok(());
        }
        let gone = team.oldest_gone().ok_or(TeamError::TooManyWorkers { team: id, max })?;
        let last = team.seats.remove(&gone).map_or(0, |seat| seat.kept.results);
        self.team_of.remove(&gone);
        self.untold.remove(&(id, gone));
        out.change(Key::member(id, gone));
        self.release(Membership { team: id, session: gone }, last, out);
        Ok(())
    }

    fn team(&self, id: Uuid) -> Result<&Team, TeamError> {
        self.teams.get(&id).ok_or(TeamError::NoTeam(id))
    }

    fn team_mut(&mut self, id: Uuid) -> Result<&mut Team, TeamError> {
        self.teams.get_mut(&id).ok_or(TeamError::NoTeam(id))
    }

    fn seat_mut(&mut self, place: Membership) -> Option<&mut Seat> {
        self.teams.get_mut(&place.team)?.seats.get_mut(&place.session)
    }

    /// The effects of one call: first every record to be kept, in its present state.
    fn finish(&self, out: Out) -> Vec<Effect> {
        let changes = out.changed.into_iter().filter_map(|key| self.change(key));
        changes.map(Effect::Keep).chain(out.said).collect()
    }

    fn change(&self, key: Key) -> Option<Change> {
        // The removal of a team removes all of it.
        let of_team = key.part != Part::Team;
        match self.record(key) {
            Some(record) => Some(Change::Put(record)),
            None if of_team && !self.teams.contains_key(&key.team) => None,
            None => Some(Change::Remove(key)),
        }
    }
}

fn shown(team: &Team) -> TeamView {
    let TeamRecord { id, ref name, leader, project, created_at, last_active, .. } = team.kept;
    let mut seats: Vec<_> = team.workers().collect();
    seats.sort_by_key(|seat| (seat.kept.joined_at, seat.kept.session));
    let workers = seats.into_iter().map(|seat| ShownWorker {
        session: seat.kept.session,
        living: !seat.is_gone(),
        pending: seat.is_pending(),
    });
    let (workers, active, name) = (workers.collect(), team.is_active(), name.clone());
    TeamView { id, name, leader, workers, active, created_at, last_active, project }
}

fn check_length(what: &'static str, len: usize, max: usize) -> Result<(), TeamError> {
    if len > max { Err(TeamError::TooLong { what, len, max }) } else { Ok(()) }
}
