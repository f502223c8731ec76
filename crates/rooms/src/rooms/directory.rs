//! The rooms of other servers, by their ids and codes. Pure.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use base::RoomId;
use store::{RoomRecord, RoomUse};

use super::{index::codes_of, known::KnownRoom};
use crate::codes::Code;

/// The rooms of other servers.
#[derive(Default)]
pub(super) struct Directory {
    by_id: HashMap<RoomId, Arc<KnownRoom>>,
    by_code: HashMap<Code, RoomId>,
}

impl Directory {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn get(&self, id: &str) -> Option<Arc<KnownRoom>> {
        self.by_id.get(id).cloned()
    }

    pub(super) fn of_code(&self, code: &Code) -> Option<Arc<KnownRoom>> {
        self.by_id.get(self.by_code.get(code)?).cloned()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<KnownRoom>> {
        self.by_id.values()
    }

    /// Takes over a room's record, unless a later one is known.
    pub(super) fn insert(&mut self, record: RoomRecord) {
        // Records may arrive out of order: a look-up of one room overtakes the list of changes.
        if self.by_id.get(&record.id).is_some_and(|known| known.epoch() > record.epoch) {
            return;
        }
        let before = self.remove(&record.id);
        for code in codes_of(&record.short_code, &record.spoken_code) {
            self.by_code.insert(code, record.id.clone());
        }
        let room = KnownRoom::new(record);
        if let Some(before) = before {
            // The record has no count of participants, and a last use that is a minute old.
            room.note_use(&before.last_use());
        }
        self.by_id.insert(room.id().clone(), Arc::new(room));
    }

    pub(super) fn remove(&mut self, id: &RoomId) -> Option<Arc<KnownRoom>> {
        let room = self.by_id.remove(id)?;
        for code in codes_of(room.short_code(), room.spoken_code()) {
            self.by_code.remove(&code);
        }
        Some(room)
    }

    /// Forgets all rooms but these.
    pub(super) fn keep(&mut self, there: &HashSet<RoomId>) {
        let gone: Vec<_> = self.by_id.keys().filter(|id| !there.contains(*id)).cloned().collect();
        gone.iter().for_each(|id| drop(self.remove(id)));
    }

    pub(super) fn note_uses(&self, uses: &[RoomUse]) {
        for usage in uses {
            if let Some(room) = self.by_id.get(&usage.room) {
                room.note_use(usage);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use store::{KeyDigest, RoomHome};

    use super::*;
    use crate::codes::normalise;

    fn record(id: &str, code: &str, epoch: u64) -> RoomRecord {
        RoomRecord {
            id: id.into(),
            short_code: code.to_owned(),
            spoken_code: format!("swift-{id}-42"),
            name: id.to_owned(),
            host_id: String::new(),
            host_token: KeyDigest([0; 32]),
            password: None,
            defaults: None,
            public: true,
            owner: None,
            idle_ms: 10,
            created: 1,
            used: 2,
            home: RoomHome { server: format!("home-{epoch}"), ..RoomHome::default() },
            epoch,
        }
    }

    fn home(directory: &Directory, code: &str) -> Option<String> {
        let code = normalise(code)?;
        Some(directory.of_code(&code)?.home().server.clone())
    }

    #[test]
    fn a_room_is_found_by_its_id_and_codes_at_its_latest_home() {
        let mut directory = Directory::default();
        directory.insert(record("one", "AAAAAA", 2));
        directory.insert(record("two", "BBBBBB", 1));
        assert_eq!(home(&directory, "aaaaaa").unwrap(), "home-2");
        assert_eq!(home(&directory, "Swift One 42").unwrap(), "home-2");
        directory.insert(record("one", "AAAAAA", 3));
        directory.insert(record("one", "AAAAAA", 1));
        let home = directory.get("one").unwrap().home().clone();
        assert_eq!(home.server, "home-3", "the older one came late");
        assert_eq!((directory.len(), directory.all().count()), (2, 2));
    }

    #[test]
    fn a_room_that_is_gone_leaves_no_code_behind() {
        let mut directory = Directory::default();
        directory.insert(record("one", "AAAAAA", 1));
        directory.insert(record("one", "CCCCCC", 1));
        assert_eq!(home(&directory, "AAAAAA"), None, "its code has changed");
        directory.insert(record("two", "BBBBBB", 1));
        directory.keep(&HashSet::from(["two".into()]));
        assert_eq!((home(&directory, "CCCCCC"), directory.len()), (None, 1));
        directory.remove(&"two".into());
        directory.remove(&"gone".into());
        assert!(directory.by_code.is_empty() && directory.by_id.is_empty());
    }

    #[test]
    fn a_known_room_shows_the_same_as_its_home() {
        let mut directory = Directory::default();
        directory.insert(record("one", "AAAAAA", 1));
        let of = |room: &str, used| RoomUse { room: room.into(), used, participants: 7 };
        directory.note_uses(&[of("one", 50), of("gone", 60)]);
        directory.insert(RoomRecord { name: "new".to_owned(), ..record("one", "AAAAAA", 1) });
        let room = directory.get("one").unwrap();
        let summary = room.summary();
        assert_eq!(summary.room.name, "new");
        assert_eq!((summary.participant_count, summary.room.expires_at), (7, Some(60)));
        assert_eq!((&*summary.room.code, &*room.info().code), ("AAAAAA", "swift-one-42"));
    }
}
