//! Looks in the store for rooms that were made at another server a moment ago, before that is told. Names that are not
//! there are remembered for a second, so that guesses cost the store little.

use std::collections::HashMap;

use base::ClientAddress;
use store::StoreError;

use super::{Rooms, fleet::Fleet};
use crate::codes;

/// How long a name counts as absent, in milliseconds.
const ABSENT: u64 = 1_000;

/// The most names that are remembered. While there are so many, no other is looked for.
const MOST: usize = 1_000;

/// The longest name that is looked for, in bytes.
const LONGEST: usize = 64;

/// Names of which the store has no room. Pure: times are in milliseconds.
#[derive(Default)]
pub(super) struct Absent(HashMap<String, u64>);

impl Absent {
    /// Whether a name is to be looked for now. Then it counts as absent until it is found.
    fn begins(&mut self, name: &str, now: u64) -> bool {
        if self.0.len() >= MOST {
            self.0.retain(|_, until| now < *until);
        }
        if self.0.len() >= MOST || self.0.get(name).is_some_and(|until| now < *until) {
            return false;
        }
        self.0.insert(name.to_owned(), now.saturating_add(ABSENT));
        true
    }
}

impl Rooms {
    /// Whether there may be a room of this name in the store that is not known here, so that [`Rooms::look_for`] is
    /// worth it. An address that has tried too many wrong codes has none looked for.
    pub fn may_be_new(&self, name: &str, from: ClientAddress) -> bool {
        let Some(fleet) = &self.0.fleet else { return false };
        if name.len() > LONGEST {
            return false;
        }
        let now = self.0.house.clock.now();
        if self.attempts().wait(from, now).is_some() {
            return false;
        }
        self.absent(fleet).begins(name, now)
    }

    /// Looks for a room of this id or code in the store, and takes it over. Blocks.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn look_for(&self, name: &str) -> Result<(), StoreError> {
        let Some(fleet) = &self.0.fleet else { return Ok(()) };
        let store = &self.0.house.store;
        let found = match codes::normalise(name) {
            Some(code) => store.find_room(code.as_str())?,
            None => None,
        };
        let found = match found {
            None => store.find_room(name)?,
            found => found,
        };
        if let Some(record) = found {
            self.note_found(fleet, record);
        }
        Ok(())
    }

    fn note_found(&self, fleet: &Fleet, record: store::RoomRecord) {
        let _making = self.making();
        if self.get(record.id.as_str()).is_none()
            && record.home.server != self.0.house.home().server
        {
            fleet.write(|directory| directory.insert(record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_once_a_second() {
        let mut absent = Absent::default();
        assert!(absent.begins("a", 1_000) && !absent.begins("a", 1_999));
        assert!(absent.begins("b", 1_999) && absent.begins("a", 2_000));
    }

    #[test]
    fn guesses_are_bounded_and_make_room_for_others_after_a_second() {
        let mut absent = Absent::default();
        let begun = (0..2 * MOST).filter(|n| absent.begins(&n.to_string(), 1_000)).count();
        assert_eq!((begun, absent.0.len()), (MOST, MOST));
        assert!(!absent.begins("another", 1_500));
        assert!(absent.begins("another", 2_000));
        assert_eq!(absent.0.len(), 1);
    }
}
