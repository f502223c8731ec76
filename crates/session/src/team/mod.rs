//! Teams: a leader and its team workers, their messages to each other, and the results of their
//! work.
//!
//! A pure state machine without a clock, tasks or files. Its driver
//!
//! 1. calls one method at a time,
//! 2. stores each [`Effect::Keep`] of the call durably: all of them, or none,
//! 3. carries out the other effects in order, and only then acknowledges the call.
//!
//! If storing fails, no other effect of that call is carried out. The driver reports the failure to
//! the caller and to all callers that wait, and rebuilds the machine from the store
//! ([`Teams::restore`], [`Teams::restarted`]). The seq of a message that was never acknowledged may
//! then be assigned again.
//!
//! - [`Teams`]: all teams: created, joined, listed, deleted
//! - [`record`]: the stored records; [`effect`]: the effects of a call; [`error`]: the reasons for
//!   refusals
//! - [`limits`]: the bounds
//! - `inbox`: messages: sent, delivered one after the other, read again from any place
//! - `results`: the result of each turn, delivered once; `leading`: the news for a
//!   leader's agent about results and messages
//! - [`wait`]: waits for results, resumed after a time-out; `waits`: the waiting callers
//! - `restore`: the state after a restart
//! - `elsewhere`: members whose sessions other machines run; [`outpost`]: those machines' part
//! - `roster`: one team; `member`: one session in it

pub mod effect;
mod elsewhere;
pub mod error;
mod inbox;
mod leading;
pub mod limits;
mod member;
pub mod outpost;
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

use self::{effect::Out, member::Member, record::TeamRecord, roster::Team, waits::Waits};
pub use self::{
    effect::{Change, Delivery, Effect},
    error::TeamError,
    inbox::Page,
    limits::Limits,
    record::{Key, Kind, Message, Part, Record},
    results::{FinishedTurn, Report},
    wait::{Answer, Caller, Finished, WaitFor, Waiting},
};

/// The result of a call: its answer, and the effects to carry out before the answer is given.
pub type Called<T> = Result<(T, Vec<Effect>), TeamError>;

/// All teams of a daemon.
#[derive(Debug)]
pub struct Teams {
    limits: Limits,
    teams: BTreeMap<Uuid, Team>,
    team_of: HashMap<Uuid, Uuid>,
    waits: Waits,
    /// The (team, worker) pairs with a result that the leader must hear of and has not heard of
    /// yet.
    unheard: BTreeSet<(Uuid, Uuid)>,
    /// The bytes of all messages and results.
    held: usize,
}

/// The request for a new team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTeam {
    /// The id of the team.
    pub id: Uuid,
    /// The name of the team.
    pub name: String,
    /// The leader's session.
    pub leader: Uuid,
    /// The project that the team works on.
    pub project: Option<Uuid>,
}

/// A team, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamView {
    /// The id of the team.
    pub id: Uuid,
    /// The name of the team.
    pub name: String,
    /// The leader's session.
    pub leader: Uuid,
    /// The team workers, in the order in which they joined.
    pub workers: Vec<ShownWorker>,
    /// Whether the leader's session is still running.
    pub active: bool,
    /// The time of its creation, in milliseconds since 1970.
    pub created_at: u64,
    /// The time of the last event in the team, in milliseconds since 1970.
    pub last_active: u64,
    /// The project that the team works on.
    pub project: Option<Uuid>,
}

/// A team worker, as clients see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownWorker {
    /// The team worker's session.
    pub session: Uuid,
    /// Whether the session is still running.
    pub living: bool,
    /// Whether a result of the team worker is still to come.
    pub pending: bool,
}

/// A session, and the team that it is in.
#[derive(Debug, Clone, Copy)]
struct Membership {
    team: Uuid,
    session: Uuid,
}

impl Teams {
    /// A machine without teams.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            teams: BTreeMap::new(),
            team_of: HashMap::new(),
            waits: Waits::default(),
            unheard: BTreeSet::new(),
            held: 0,
        }
    }

    /// Creates a team around its leader.
    ///
    /// # Errors
    /// When the id is taken, the leader is in a team already, or there are too many teams.
    pub fn create(&mut self, new: NewTeam, at: u64) -> Result<Vec<Effect>, TeamError> {
        self.check_new(&new)?;
        let NewTeam { id, name, leader, project } = new;
        let (created_at, last_active, next_seq) = (at, at, 1);
        let record = TeamRecord { id, name, leader, project, created_at, last_active, next_seq };
        let mut team = Team::new(record);
        team.add_member(leader, at);
        self.teams.insert(id, team);
        self.team_of.insert(leader, id);
        let mut out = Out::default();
        out.change(Key::team(id));
        out.change(Key::member(id, leader));
        out.say(Effect::Updated(id));
        Ok(self.finish(out))
    }

    /// Adds a session to a team as its team worker.
    ///
    /// # Errors
    /// When there is no such team, its leader has ended, the session is in a team already, or there
    /// are too many team workers.
    pub fn worker_joined(
        &mut self,
        team: Uuid,
        session: Uuid,
        at: u64,
    ) -> Result<Vec<Effect>, TeamError> {
        self.join(Membership { team, session }, None, at)
    }

    /// Adds a session that another machine runs to a team as its team worker. `node` is that
    /// machine's node id.
    ///
    /// # Errors
    /// As for [`Teams::worker_joined`].
    pub fn worker_joined_at(
        &mut self,
        team: Uuid,
        session: Uuid,
        node: &str,
        at: u64,
    ) -> Result<Vec<Effect>, TeamError> {
        self.join(Membership { team, session }, Some(node.to_owned()), at)
    }

    fn join(
        &mut self,
        Membership { team, session }: Membership,
        node: Option<String>,
        at: u64,
    ) -> Result<Vec<Effect>, TeamError> {
        self.team(team)?.check_active()?;
        self.check_free(session)?;
        let mut out = Out::default();
        self.make_place(team, &mut out)?;
        let found = self.team_mut(team)?;
        found.add_member(session, at);
        found.place(session, node);
        found.record.last_active = at;
        self.team_of.insert(session, team);
        out.change(Key::team(team));
        out.change(Key::member(team, session));
        out.say(Effect::Updated(team));
        Ok(self.finish(out))
    }

    /// Deletes a team with all its records. The effects kill its sessions, and tell the callers
    /// that wait for it that the team was deleted.
    ///
    /// # Errors
    /// When there is no such team.
    pub fn delete(&mut self, id: Uuid) -> Result<Vec<Effect>, TeamError> {
        let team = self.teams.remove(&id).ok_or(TeamError::NoTeam(id))?;
        self.held -= team.held();
        self.team_of.retain(|_, of| *of != id);
        self.unheard.retain(|(of, _)| *of != id);
        let mut out = Out::default();
        out.change(Key::team(id));
        out.say(Effect::Deleted(id));
        for caller in self.waits.of_team_end(id) {
            out.say(Effect::WaitAnswered { caller, answer: Err(TeamError::Deleted(id)) });
        }
        let living = team.members.values().filter(|member| !member.is_gone());
        out.say(Effect::KillSessions(living.map(|member| member.record.session).collect()));
        Ok(self.finish(out))
    }

    /// A team, as clients see it.
    ///
    /// # Errors
    /// When there is no such team.
    pub fn get(&self, id: Uuid) -> Result<TeamView, TeamError> {
        self.team(id).map(shown)
    }

    /// All teams, oldest first.
    pub fn list(&self) -> Vec<TeamView> {
        let mut all: Vec<_> = self.teams.values().map(shown).collect();
        all.sort_by_key(|team| (team.created_at, team.id));
        all
    }

    /// The team that a session is in, and whether the session leads it.
    pub fn team_of(&self, session: Uuid) -> Option<(Uuid, bool)> {
        let team = *self.team_of.get(&session)?;
        Some((team, self.teams.get(&team)?.record.leader == session))
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

    /// Makes room for one more team worker. If the team is full, it forgets the team worker that
    /// ended first.
    fn make_place(&mut self, id: Uuid, out: &mut Out) -> Result<(), TeamError> {
        let max = self.limits.workers;
        let team = self.team_mut(id)?;
        if team.workers().count() < max {
            return Ok(());
        }
        let gone = team.oldest_gone().ok_or(TeamError::TooManyWorkers { team: id, max })?;
        let last = team.members.remove(&gone).map_or(0, |member| member.record.results);
        self.team_of.remove(&gone);
        self.unheard.remove(&(id, gone));
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

    fn member_mut(&mut self, membership: Membership) -> Option<&mut Member> {
        self.teams.get_mut(&membership.team)?.members.get_mut(&membership.session)
    }

    /// The effects of one call. First come the changed records, in their present state.
    fn finish(&self, out: Out) -> Vec<Effect> {
        let changes = out.changed.into_iter().filter_map(|key| self.change(key));
        changes.map(Effect::Keep).chain(out.effects).collect()
    }

    fn change(&self, key: Key) -> Option<Change> {
        // The removal of a team already removes all its records.
        let of_team = key.part != Part::Team;
        match self.record(key) {
            Some(record) => Some(Change::Put(record)),
            None if of_team && !self.teams.contains_key(&key.team) => None,
            None => Some(Change::Remove(key)),
        }
    }
}

fn shown(team: &Team) -> TeamView {
    let TeamRecord { id, ref name, leader, project, created_at, last_active, .. } = team.record;
    let mut members: Vec<_> = team.workers().collect();
    members.sort_by_key(|member| (member.record.joined_at, member.record.session));
    let workers = members.into_iter().map(|member| ShownWorker {
        session: member.record.session,
        living: !member.is_gone(),
        pending: member.is_pending(),
    });
    let (workers, active, name) = (workers.collect(), team.is_active(), name.clone());
    TeamView { id, name, leader, workers, active, created_at, last_active, project }
}

fn check_length(what: &'static str, len: usize, max: usize) -> Result<(), TeamError> {
    if len > max { Err(TeamError::TooLong { what, len, max }) } else { Ok(()) }
}
