//! Records of teams in the store. Each record is a fact of the kind `team`. Its id is the team's,
//! followed by the record's part: `TEAM/message/00000000000000000012`. The outpost's records are
//! facts of the kind `outpost`, by session.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ::session::team::{
    Change, Key, Part, Record,
    outpost::{SeatKey, SeatPart, SeatRecord},
};
use serde::{Serialize, de::DeserializeOwned};
use store::{Change as Step, Fact, StoreError, WorkspaceStore, workspace::MAX_CHANGES};
use tokio::task;
use uuid::Uuid;

/// The kind of these facts in the store.
pub(crate) const KIND: &str = "team";
/// The kind of the outpost's facts.
const OUTPOST: &str = "outpost";

/// The store, and the keys of the records in it.
pub(crate) struct Records {
    store: Arc<dyn WorkspaceStore>,
    parts: BTreeMap<Uuid, BTreeSet<Part>>,
    seats: BTreeMap<Uuid, BTreeSet<SeatPart>>,
}

/// The records found in the store.
#[derive(Default)]
pub(crate) struct StoredTeams {
    pub(crate) records: Vec<Record>,
    /// The records of the outpost.
    pub(crate) seats: Vec<SeatRecord>,
    /// Whether all records could be read.
    pub(crate) all_read: bool,
}

/// The changes of one call to one team, which are written together.
type Atom = Vec<Step>;

impl Records {
    pub(crate) fn new(store: Arc<dyn WorkspaceStore>) -> Self {
        Self { store, parts: BTreeMap::new(), seats: BTreeMap::new() }
    }

    /// Reads all records. A record that cannot be read is logged and left in the store.
    pub(crate) async fn load(&mut self) -> Result<StoredTeams, StoreError> {
        let (teams, outpost) = (self.facts(KIND).await?, self.facts(OUTPOST).await?);
        let records: Vec<Record> = teams.iter().filter_map(read).collect();
        let seats: Vec<SeatRecord> = outpost.iter().filter_map(read).collect();
        let all_read = records.len() == teams.len() && seats.len() == outpost.len();
        self.parts.clear();
        self.seats.clear();
        records.iter().for_each(|record| self.note(record.key()));
        seats.iter().for_each(|record| self.note_seat(record.key()));
        Ok(StoredTeams { records, seats, all_read })
    }

    async fn facts(&self, kind: &'static str) -> Result<Vec<Fact>, StoreError> {
        let store = Arc::clone(&self.store);
        let facts = task::spawn_blocking(move || store.load_facts(kind)).await;
        // The task fails only if the process ends or the store panicked. It must not look as if there
        // were no teams: their sessions would be ended.
        facts.unwrap_or_else(|error| {
            let database = "of this workspace's teams".to_owned();
            Err(StoreError::Refused { database, source: Box::new(error) })
        })
    }

    /// Writes the changes of these calls. The changes of one call to one team are written all or
    /// not at all, unless there are more than [`MAX_CHANGES`].
    ///
    /// # Errors
    /// When the store fails: the reason, in words. What the store holds is then unknown, so it must be read
    /// again.
    pub(crate) async fn write(&mut self, calls: Vec<Vec<Change>>) -> Result<(), String> {
        let atoms: Vec<Atom> = calls.into_iter().flat_map(|call| self.atoms(call)).collect();
        let steps = packed(atoms);
        if steps.is_empty() {
            return Ok(());
        }
        let store = Arc::clone(&self.store);
        let write = move || steps.iter().try_for_each(|step| store.change_facts(step));
        let written = task::spawn_blocking(write).await.map_err(|error| error.to_string())?;
        written.map_err(|error| base::error::chain(&error))
    }

    fn atoms(&mut self, call: Vec<Change>) -> Vec<Atom> {
        let mut of_team: BTreeMap<Uuid, Atom> = BTreeMap::new();
        for change in call {
            let atom = of_team.entry(team_of(&change)).or_default();
            self.add(change, atom);
        }
        of_team.into_values().collect()
    }

    fn add(&mut self, change: Change, atom: &mut Atom) {
        match change {
            Change::Put(record) => {
                self.note(record.key());
                atom.push(keep(KIND, id(record.key()), &record));
            }
            Change::PutSeat(record) => {
                self.note_seat(record.key());
                atom.push(keep(OUTPOST, seat_id(record.key()), &record));
            }
            Change::Remove(key) => self.remove(key, atom),
            Change::RemoveSeat(key) => self.remove_seat(key, atom),
        }
    }

    fn remove(&mut self, key: Key, atom: &mut Atom) {
        // The team's own record goes first: without it, the other records mean nothing.
        atom.push(forget(key));
        if key.part == Part::Team {
            let parts = self.parts.remove(&key.team).unwrap_or_default().into_iter();
            let others = parts.filter(|part| *part != Part::Team);
            atom.extend(others.map(|part| forget(Key { part, ..key })));
        } else if let Some(parts) = self.parts.get_mut(&key.team) {
            parts.remove(&key.part);
        }
    }

    fn remove_seat(&mut self, key: SeatKey, atom: &mut Atom) {
        atom.push(forget_seat(key));
        if key.part == SeatPart::Seat {
            let parts = self.seats.remove(&key.session).unwrap_or_default().into_iter();
            let others = parts.filter(|part| *part != SeatPart::Seat);
            atom.extend(others.map(|part| forget_seat(SeatKey { part, ..key })));
        } else if let Some(parts) = self.seats.get_mut(&key.session) {
            parts.remove(&key.part);
        }
    }

    fn note(&mut self, key: Key) {
        self.parts.entry(key.team).or_default().insert(key.part);
    }

    fn note_seat(&mut self, key: SeatKey) {
        self.seats.entry(key.session).or_default().insert(key.part);
    }
}

/// Packs atoms into few steps. An atom that is too large for one step is split: its new records are
/// stored first, since a record that is removed late does no harm.
fn packed(atoms: Vec<Atom>) -> Vec<Vec<Step>> {
    let mut steps: Vec<Vec<Step>> = Vec::new();
    for mut atom in atoms {
        match steps.last_mut() {
            Some(last) if last.len() + atom.len() <= MAX_CHANGES => last.append(&mut atom),
            _ => steps.push(atom),
        }
    }
    steps.into_iter().flat_map(split).filter(|step| !step.is_empty()).collect()
}

fn split(mut step: Vec<Step>) -> Vec<Vec<Step>> {
    if step.len() <= MAX_CHANGES {
        return vec![step];
    }
    step.sort_by_key(|change| matches!(change, Step::Forget { .. }));
    step.chunks(MAX_CHANGES).map(<[Step]>::to_vec).collect()
}

/// The team, or the session of the outpost, whose records are written together.
fn team_of(change: &Change) -> Uuid {
    match change {
        Change::Put(record) => record.key().team,
        Change::Remove(key) => key.team,
        Change::PutSeat(record) => record.key().session,
        Change::RemoveSeat(key) => key.session,
    }
}

fn id(key: Key) -> String {
    format!("{}/{}", key.team, key.part)
}

fn forget(key: Key) -> Step {
    Step::Forget { kind: KIND.to_owned(), id: id(key) }
}

fn seat_id(key: SeatKey) -> String {
    format!("{}/{}", key.session, key.part)
}

fn forget_seat(key: SeatKey) -> Step {
    Step::Forget { kind: OUTPOST.to_owned(), id: seat_id(key) }
}

fn keep(kind: &str, id: String, record: &impl Serialize) -> Step {
    // Every record has a JSON form, so the default is never used.
    let json = serde_json::to_string(record).unwrap_or_default();
    Step::Keep(Fact { kind: kind.to_owned(), id, json })
}

fn read<T: DeserializeOwned>(fact: &Fact) -> Option<T> {
    let record = serde_json::from_str(&fact.json);
    record.inspect_err(|error| tracing::error!(id = fact.id, %error, "a team cannot be read")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(number: usize) -> Step {
        let fact = Fact { kind: KIND.to_owned(), id: number.to_string(), json: String::new() };
        Step::Keep(fact)
    }

    fn forgotten(number: usize) -> Step {
        Step::Forget { kind: KIND.to_owned(), id: number.to_string() }
    }

    struct Panicking;

    impl WorkspaceStore for Panicking {
        fn load_facts(&self, _: &str) -> Result<Vec<Fact>, StoreError> {
            panic!("a bug in the store")
        }

        fn change_facts(&self, _: &[Step]) -> Result<(), StoreError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_store_that_panics_is_no_store_without_teams() {
        let loaded = Records::new(Arc::new(Panicking)).load().await;
        let words = base::error::chain(&loaded.err().unwrap());
        assert!(words.contains("a bug in the store"), "{words}");
    }

    #[test]
    fn related_records_are_written_together() {
        let atoms = vec![vec![added(0); MAX_CHANGES - 1], vec![added(1); 2], vec![added(2)]];
        let steps = packed(atoms);
        let sizes: Vec<_> = steps.iter().map(Vec::len).collect();
        assert_eq!(sizes, [MAX_CHANGES - 1, 3]);
        assert!(packed(vec![Vec::new()]).is_empty());
    }

    #[test]
    fn of_what_is_too_large_for_one_step_the_new_comes_first() {
        let mut atom: Vec<_> = (0..MAX_CHANGES).map(forgotten).collect();
        atom.push(added(0));
        let steps = packed(vec![atom]);
        assert_eq!(steps.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_CHANGES, 1]);
        assert_eq!(steps[0][0], added(0));
        assert_eq!(steps[0][1], forgotten(0));
    }
}
