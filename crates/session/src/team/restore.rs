//! The state after a restart.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{
    Effect, Limits, Membership, Teams,
    effect::Out,
    member::Member,
    record::{Key, Part, Record},
    roster::Team,
};

impl Teams {
    /// Rebuilds the teams from these records, in any order. No caller waits, and no message is
    /// being delivered; [`Teams::restarted`] then does what the restart requires. Also returns the
    /// keys of records that belong to nothing, which the caller may remove.
    pub fn restore(limits: Limits, records: impl IntoIterator<Item = Record>) -> (Self, Vec<Key>) {
        let mut teams = Self::new(limits);
        // Sorted by key, a team comes before its members, and the members before the messages.
        let sorted: BTreeMap<_, _> = records.into_iter().map(|one| (one.key(), one)).collect();
        let mut left_out: Vec<_> =
            sorted.into_iter().filter_map(|(key, record)| teams.take_in(key, record)).collect();
        left_out.extend(teams.drop_leaderless());
        teams.count();
        (teams, left_out)
    }

    /// Handles the start of the daemon. Work that had begun in the team workers' sessions has
    /// failed; messages to a leader in a turn that did not end are delivered again; messages that
    /// have not reached their recipients are delivered. Sessions that other machines run have gone on,
    /// and those machines report what became of them. Call this once, after [`Teams::restore`] and
    /// before any session goes on. Before this call, report each session that no longer exists as
    /// [gone](Teams::session_gone).
    pub fn restarted(&mut self, at: u64) -> Vec<Effect> {
        let mut out = Out::default();
        let memberships: Vec<_> = self.memberships().collect();
        for (membership, leads) in memberships {
            match leads {
                true => self.hand_again(membership, &mut out),
                false if self.node_of(membership.session).is_some() => {}
                false => self.fail_begun(membership, at, &mut out),
            }
            self.offer(membership, &mut out);
        }
        self.finish(out)
    }

    /// All present records, by key.
    pub fn records(&self) -> Vec<Record> {
        let mut all: Vec<_> = self.teams.values().flat_map(of_team).collect();
        all.extend(self.waits.records());
        all.sort_by_key(Record::key);
        all
    }

    pub(super) fn record(&self, key: Key) -> Option<Record> {
        let found = self.teams.get(&key.team)?;
        let team = key.team;
        match key.part {
            Part::Team => Some(Record::Team(found.record.clone())),
            Part::Member(session) => {
                found.members.get(&session).map(|member| member_record(team, member))
            }
            Part::Message(seq) => {
                let message = found.messages.get(&seq)?.clone();
                Some(Record::Message { team, message })
            }
            Part::Result(worker, number) => {
                let result = found.results.get(&(worker, number))?.clone();
                Some(Record::Result { team, result })
            }
            Part::Wait(id) => self.waits.record(id),
        }
    }

    fn memberships(&self) -> impl Iterator<Item = (Membership, bool)> {
        self.teams.iter().flat_map(|(&team, found)| {
            let sessions = found.members.keys();
            sessions
                .map(move |&session| (Membership { team, session }, session == found.record.leader))
        })
    }

    /// Takes a record in. Returns its key if the record belongs to nothing.
    fn take_in(&mut self, key: Key, record: Record) -> Option<Key> {
        if let Record::Team(record) = record {
            self.teams.insert(record.id, Team::new(record));
            return None;
        }
        let Some(team) = self.teams.get_mut(&key.team) else { return Some(key) };
        match record {
            Record::Member { member, .. } if !self.team_of.contains_key(&member.session) => {
                self.team_of.insert(member.session, key.team);
                team.members.insert(member.session, Member::new(member));
            }
            Record::Message { message, .. } => team.add(message),
            Record::Result { result, .. } => {
                team.results.insert((result.worker, result.number), result);
            }
            Record::Wait(wait) => self.waits.restore(wait),
            Record::Team(_) | Record::Member { .. } => return Some(key),
        }
        None
    }

    fn drop_leaderless(&mut self) -> Vec<Key> {
        let leaderless = |team: &&Team| !team.members.contains_key(&team.record.leader);
        let ids: Vec<Uuid> =
            self.teams.values().filter(leaderless).map(|team| team.record.id).collect();
        for id in &ids {
            self.teams.remove(id);
            self.team_of.retain(|_, of| of != id);
            self.waits.of_team_end(*id);
        }
        ids.into_iter().map(Key::team).collect()
    }

    fn count(&mut self) {
        self.held = self.teams.values().map(Team::held).sum();
        self.note_all_news();
    }
}

fn of_team(team: &Team) -> impl Iterator<Item = Record> {
    let id = team.record.id;
    let members = team.members.values().map(move |member| member_record(id, member));
    let messages = team.messages.values().cloned();
    let messages = messages.map(move |message| Record::Message { team: id, message });
    let results = team.results.values().cloned();
    let results = results.map(move |result| Record::Result { team: id, result });
    let itself = Record::Team(team.record.clone());
    std::iter::once(itself).chain(members).chain(messages).chain(results)
}

fn member_record(team: Uuid, member: &Member) -> Record {
    Record::Member { team, member: member.record.clone() }
}
