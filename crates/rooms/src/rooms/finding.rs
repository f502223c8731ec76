//! Looks in the store for rooms that were made at another server a moment ago, before that is announced. Names that
//! are not there are remembered for a second, so that guesses cost the store little.

use std::{collections::HashMap, sync::Arc, time::Duration};

use base::ClientAddress;
use store::{RoomRecord, StoreError};
use tokio::{sync::Semaphore, task::spawn_blocking, time::timeout};

use super::{Place, Rooms, fleet::Fleet, known::KnownRoom};
use crate::codes;

/// How long a name counts as absent, in milliseconds.
const ABSENT: u64 = 1_000;

/// The most names that are remembered. At this number no other is looked for.
const MOST: usize = 1_000;

/// The longest name that is looked for, in bytes.
const LONGEST: usize = 64;

/// The most names that are looked for at once, so that guesses do not keep the store from others.
const AT_ONCE: usize = 4;

/// How long a request waits until its name is looked for.
const TURN: Duration = Duration::from_secs(5);

/// Names of which the store has no room. Pure: times are in milliseconds.
#[derive(Default)]
pub(super) struct Absent(HashMap<String, u64>);

impl Absent {
    /// Whether a name was absent a moment ago, or too many names were.
    fn has(&mut self, name: &str, now: u64) -> bool {
        // Only now, as a look through all names for each one would cost more than it saves.
        if self.0.len() >= MOST {
            self.0.retain(|_, until| now < *until);
        }
        self.0.len() >= MOST || self.0.get(name).is_some_and(|until| now < *until)
    }

    fn note(&mut self, name: &str, now: u64) {
        self.0.insert(name.to_owned(), now.saturating_add(ABSENT));
    }
}

/// A turn to look for a name.
pub(super) struct Turns(Semaphore);

impl Default for Turns {
    fn default() -> Self {
        Self(Semaphore::const_new(AT_ONCE))
    }
}

impl Rooms {
    /// The room of this id or code, if its home is another server. One that is not known is looked for in the store,
    /// unless the address has tried too many wrong codes.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn find_elsewhere(
        &self,
        name: &str,
        from: ClientAddress,
    ) -> Result<Option<Arc<KnownRoom>>, StoreError> {
        let Some(fleet) = self.fleet().filter(|_| self.may_be_elsewhere(name, from)) else {
            return Ok(self.known_elsewhere(name));
        };
        let Ok(Ok(_turn)) = timeout(TURN, fleet.turns.0.acquire()).await else { return Ok(None) };
        // Others may have looked for it meanwhile.
        if self.may_be_elsewhere(name, from) {
            let (rooms, wanted) = (self.clone(), name.to_owned());
            let looked = spawn_blocking(move || rooms.look_for(&wanted)).await;
            looked.unwrap_or(Ok(()))?;
        }
        Ok(self.known_elsewhere(name))
    }

    fn known_elsewhere(&self, name: &str) -> Option<Arc<KnownRoom>> {
        match self.place(name) {
            Place::There(known) => Some(known),
            Place::Here(_) | Place::Unknown => None,
        }
    }

    /// Whether the store may have a room of a name that is not known here.
    fn may_be_elsewhere(&self, name: &str, from: ClientAddress) -> bool {
        let Some(fleet) = self.fleet().filter(|_| name.len() <= LONGEST) else { return false };
        if !matches!(self.place(name), Place::Unknown) {
            return false;
        }
        let now = self.0.house.clock.now();
        // An address that guesses is refused anyway, and must not reach the store.
        self.attempts().wait(from, now).is_none() && !self.absent(fleet).has(name, now)
    }

    /// Looks for a room of this id or code in the store, and notes what is found. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn look_for(&self, name: &str) -> Result<(), StoreError> {
        let Some(fleet) = self.fleet() else { return Ok(()) };
        let store = &self.0.house.store;
        let found = match codes::normalise(name) {
            Some(code) => store.find_room(code.as_str())?,
            None => None,
        };
        // A code first, as people type one; without such a room the name may be an id.
        let found = match found {
            None => store.find_room(name)?,
            found => found,
        };
        match found {
            Some(record) => self.note_found(fleet, record),
            None => self.absent(fleet).note(name, self.0.house.clock.now()),
        }
        Ok(())
    }

    fn note_found(&self, fleet: &Fleet, record: RoomRecord) {
        // A room that is just being made here gets into the index before this.
        let _making = self.making();
        if self.get(record.id.as_str()).is_none() {
            fleet.write(|directory| directory.insert(record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_was_not_there_is_not_looked_for_within_a_second() {
        let mut absent = Absent::default();
        assert!(!absent.has("a", 1_000));
        absent.note("a", 1_000);
        assert!(absent.has("a", 1_999) && !absent.has("b", 1_999) && !absent.has("a", 2_000));
    }

    #[test]
    fn guesses_are_bounded_and_make_room_for_others_after_a_second() {
        let mut absent = Absent::default();
        for number in 0..2 * MOST {
            let name = number.to_string();
            if !absent.has(&name, 1_000) {
                absent.note(&name, 1_000);
            }
        }
        assert_eq!(absent.0.len(), MOST);
        assert!(absent.has("another", 1_500) && !absent.has("another", 2_000));
        assert!(absent.0.is_empty());
    }
}
