//! The waits and their callers, with deadlines.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use uuid::Uuid;

use super::{
    error::TeamError,
    member::Member,
    record::{Record, Slot, WaitRecord},
    wait::Caller,
};

/// All waits, and their callers.
#[derive(Debug, Default)]
pub(super) struct Waits {
    all: BTreeMap<Uuid, Wait>,
    callers: BTreeMap<Caller, (Uuid, Instant)>,
    deadlines: BTreeSet<(Instant, Caller)>,
    next: u64,
}

#[derive(Debug)]
struct Wait {
    record: WaitRecord,
    /// Whether a caller knows the wait's id: only then is the wait stored.
    disclosed: bool,
    callers: BTreeSet<Caller>,
}

impl Waits {
    pub(super) fn get(&self, id: Uuid) -> Option<&WaitRecord> {
        self.all.get(&id).map(|wait| &wait.record)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn is_disclosed(&self, id: Uuid) -> bool {
        self.all.get(&id).is_some_and(|wait| wait.disclosed)
    }

    pub(super) fn record(&self, id: Uuid) -> Option<Record> {
        self.get(id).filter(|_| self.is_disclosed(id)).cloned().map(Record::Wait)
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        self.all.keys().filter_map(|id| self.record(*id))
    }

    pub(super) fn restore(&mut self, record: WaitRecord) {
        let wait = Wait { disclosed: true, callers: BTreeSet::new(), record };
        self.all.insert(wait.record.id, wait);
    }

    /// Adds a new wait. If there are too many, drops an old wait and returns it.
    pub(super) fn insert(
        &mut self,
        record: WaitRecord,
        max: usize,
    ) -> Result<Option<WaitRecord>, TeamError> {
        let mut dropped = None;
        if self.all.len() >= max {
            // Only a wait without a caller may go: a caller that waits must get its answer.
            let oldest = self.oldest_parked().ok_or(TeamError::TooManyWaits { max })?;
            dropped = self.all.remove(&oldest).map(|wait| wait.record);
        }
        let wait = Wait { disclosed: false, callers: BTreeSet::new(), record };
        self.all.insert(wait.record.id, wait);
        Ok(dropped)
    }

    /// Checks that one more caller can resume this wait of this team.
    pub(super) fn check(&self, id: Uuid, team: Uuid, max: usize) -> Result<(), TeamError> {
        // An id that was never reported can only be a guess, and a wait of another team does not belong to this one.
        let wait = self.all.get(&id).filter(|wait| wait.disclosed && wait.record.team == team);
        let callers = wait.ok_or(TeamError::UnknownWait(id))?.callers.len();
        if callers < max { Ok(()) } else { Err(TeamError::TooManyCallers { wait: id, max }) }
    }

    pub(super) fn join(&mut self, id: Uuid, deadline: Instant) -> Caller {
        let caller = Caller(self.next);
        self.next += 1;
        self.callers.insert(caller, (id, deadline));
        self.deadlines.insert((deadline, caller));
        if let Some(wait) = self.all.get_mut(&id) {
            wait.callers.insert(caller);
        }
        caller
    }

    /// Removes a caller. Returns its wait.
    pub(super) fn leave(&mut self, caller: Caller) -> Option<Uuid> {
        let (id, deadline) = self.callers.remove(&caller)?;
        self.deadlines.remove(&(deadline, caller));
        if let Some(wait) = self.all.get_mut(&id) {
            wait.callers.remove(&caller);
        }
        Some(id)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Removes a caller whose time-out is over, and returns it with its wait.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<(Caller, Uuid)> {
        let (_, caller) = *self.deadlines.first().filter(|(deadline, _)| *deadline <= now)?;
        Some((caller, self.leave(caller)?))
    }

    pub(super) fn dismiss(&mut self, id: Uuid) -> BTreeSet<Caller> {
        let callers = self.all.get(&id).map(|wait| wait.callers.clone()).unwrap_or_default();
        for caller in &callers {
            self.leave(*caller);
        }
        callers
    }

    /// Ends all waits of a team, and returns their callers.
    pub(super) fn of_team_end(&mut self, team: Uuid) -> BTreeSet<Caller> {
        let its = self.all.values().filter(|wait| wait.record.team == team);
        let ids: Vec<_> = its.map(|wait| wait.record.id).collect();
        let callers = ids.iter().flat_map(|id| self.dismiss(*id)).collect();
        self.all.retain(|_, wait| wait.record.team != team);
        callers
    }

    pub(super) fn disclose(&mut self, id: Uuid) {
        if let Some(wait) = self.all.get_mut(&id) {
            wait.disclosed = true;
        }
    }

    /// Notes that a caller has the complete answer. Returns the wait's team, unless a caller
    /// already had the answer before.
    pub(super) fn collect(&mut self, id: Uuid) -> Option<Uuid> {
        let record = &mut self.all.get_mut(&id)?.record;
        let first = !std::mem::replace(&mut record.collected, true);
        first.then_some(record.team)
    }

    /// Drops a wait that has no caller and whose id was never reported.
    pub(super) fn drop_unknown(&mut self, id: Uuid) -> Option<WaitRecord> {
        let unknown = |wait: &Wait| !wait.disclosed && wait.callers.is_empty();
        self.all
            .get(&id)
            .is_some_and(unknown)
            .then(|| self.all.remove(&id))?
            .map(|wait| wait.record)
    }

    /// The waits in which a result of this team worker is still awaited.
    pub(super) fn open_for(&self, worker: Uuid) -> Vec<Uuid> {
        let open =
            |record: &&WaitRecord| matches!(record.slots.get(&worker), Some(Slot::Open { .. }));
        self.all.values().map(|wait| &wait.record).filter(open).map(|record| record.id).collect()
    }

    /// Whether the answer of any wait includes this result.
    pub(super) fn need(&self, worker: Uuid, number: u64) -> bool {
        self.all.values().any(|wait| wait.record.slots.get(&worker) == Some(&Slot::Done(number)))
    }

    /// Updates each open slot of a wait with `look`. Returns whether any slot changed.
    pub(super) fn update(&mut self, id: Uuid, look: impl Fn(&Uuid, Slot) -> Slot) -> bool {
        let Some(wait) = self.all.get_mut(&id) else { return false };
        let mut changed = false;
        for (worker, slot) in &mut wait.record.slots {
            if matches!(slot, Slot::Open { .. }) {
                let now = look(worker, *slot);
                changed |= now != std::mem::replace(slot, now);
            }
        }
        changed
    }

    /// The oldest wait without a caller, preferably one whose results were collected.
    fn oldest_parked(&self) -> Option<Uuid> {
        let parked = self.all.values().filter(|wait| wait.callers.is_empty());
        let oldest =
            parked.map(|wait| (!wait.record.collected, wait.record.made_at, wait.record.id));
        oldest.min().map(|(_, _, id)| id)
    }
}

impl WaitRecord {
    pub(super) fn is_complete(&self) -> bool {
        self.slots.values().all(|slot| matches!(slot, Slot::Done(_)))
    }
}

impl Member {
    /// The present state of a slot for this team worker.
    pub(super) fn slot(&self, slot: Slot) -> Slot {
        match slot {
            Slot::Open { until, after } if self.satisfies(until, after) => {
                Slot::Done(self.record.results)
            }
            slot => slot,
        }
    }
}
