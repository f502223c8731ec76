//! Bounds on the watchers of events.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::RoomId;

/// The most watchers at once.
const IN_ALL: usize = 20_000;

/// The most watchers of one room at once.
const OF_A_ROOM: usize = 5_000;

/// The current watchers, counted: each holds a connection.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    /// The watchers of each single room. Watchers of all rooms are counted in `all` only.
    of_rooms: HashMap<RoomId, usize>,
}

/// The limit of watchers is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooManyWatchers;

/// A watcher's place, until this is dropped.
pub(super) struct WatcherPlace {
    watchers: Arc<Watchers>,
    room: Option<RoomId>,
}

impl Watchers {
    pub(super) fn add(
        self: &Arc<Self>,
        room: Option<&RoomId>,
    ) -> Result<WatcherPlace, TooManyWatchers> {
        let mut counts = self.lock();
        let of_room = room.and_then(|room| counts.of_rooms.get(room)).copied().unwrap_or(0);
        if counts.all >= IN_ALL || of_room >= OF_A_ROOM {
            return Err(TooManyWatchers);
        }
        counts.all += 1;
        if let Some(room) = room {
            counts.of_rooms.insert(room.clone(), of_room + 1);
        }
        drop(counts);
        Ok(WatcherPlace { watchers: Arc::clone(self), room: room.cloned() })
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WatcherPlace {
    fn drop(&mut self) {
        let mut counts = self.watchers.lock();
        counts.all -= 1;
        let Some(room) = &self.room else { return };
        if let Some(left) = counts.of_rooms.get_mut(room) {
            *left -= 1;
            if *left == 0 {
                counts.of_rooms.remove(room);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_are_bounded_for_a_room_and_in_all() {
        let watchers = Arc::new(Watchers::default());
        let add = |room: usize| watchers.add(Some(&RoomId::from(room.to_string())));
        let mut watching: Vec<_> = (0..OF_A_ROOM).map(|_| add(0).unwrap()).collect();
        assert_eq!(add(0).err(), Some(TooManyWatchers));
        watching.extend((OF_A_ROOM..IN_ALL).map(|n| add(n).unwrap()));
        assert_eq!(add(IN_ALL).err(), Some(TooManyWatchers));
        assert_eq!(watchers.add(None).err(), Some(TooManyWatchers));
        drop(watching);
        assert!(watchers.add(None).is_ok() && add(0).is_ok());
        let counts = watchers.lock();
        assert!(counts.all == 0 && counts.of_rooms.is_empty(), "nothing is left behind");
    }
}
