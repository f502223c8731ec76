//! The rooms: those that the server lists, and those that are watched.

use base::Secret;
use protocol::room::RoomSummary;

use super::{list::List, reading::Reading, room::Room};

/// The most rooms that are watched at once. The one that was not open for the longest time is dropped first.
pub const MOST: usize = 8;

/// A part of the screen of rooms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// The list of rooms.
    #[default]
    List,
    /// The participants of the open room.
    People,
    /// Its events.
    Activity,
}

/// The rooms.
#[derive(Debug, Default)]
pub struct Rooms {
    /// The rooms that the server lists.
    pub listed: Reading<Vec<RoomSummary>>,
    /// The part that the keyboard acts on.
    pub part: Part,
    /// The place in the list.
    pub list: List,
    /// The rooms that are watched, the open one first.
    watched: Vec<Room>,
    next: u64,
}

/// A room in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The code by which it is opened.
    pub code: String,
    /// Its name for people.
    pub name: String,
    /// The number of its participants, as far as known.
    pub people: Option<u32>,
    /// Whether it needs a password.
    pub locked: bool,
}

/// The next step after a room was opened.
#[derive(Debug)]
pub struct WatchChange {
    /// The number of the watch to begin, if the room was not watched yet.
    pub watch: Option<u64>,
    /// The watch to stop.
    pub unwatch: Option<u64>,
}

impl Rooms {
    /// The entries of the list: the rooms that the server lists, then those that were opened by their code.
    pub fn entries(&self) -> Vec<Entry> {
        let listed = self.listed.all();
        let unlisted = |room: &&Room| !listed.iter().any(|summary| room.is(summary));
        let by_code = self.watched.iter().filter(unlisted).map(Room::entry);
        let mut by_code: Vec<Entry> = by_code.collect();
        // The order of the watched rooms changes whenever one is opened: rows would jump under the cursor.
        by_code.sort_by(|a, b| a.code.cmp(&b.code));
        listed.iter().map(entry).chain(by_code).collect()
    }

    /// A scope as people know it: that of a listed room is shown as the room's code.
    pub fn scope(&self, scope: &str) -> String {
        let id = scope.strip_prefix("room:");
        let room = self.listed.all().iter().find(|room| Some(room.room.id.as_str()) == id);
        room.map_or_else(|| scope.to_owned(), |room| entry(room).code)
    }

    /// The open room.
    pub fn open(&self) -> Option<&Room> {
        self.watched.first()
    }

    /// The open room, to be changed.
    pub fn open_mut(&mut self) -> Option<&mut Room> {
        self.watched.first_mut()
    }

    /// The rooms that are watched.
    pub fn watched(&self) -> &[Room] {
        &self.watched
    }

    /// A watched room, by the number of its watch.
    pub fn by_watch(&mut self, watch: u64) -> Option<&mut Room> {
        self.watched.iter_mut().find(|room| room.watch == watch)
    }

    /// Opens the room of this code.
    pub fn look_at(&mut self, code: &str, password: Option<Secret>) -> WatchChange {
        let entry = self.listed.all().iter().find(|room| has_code(room, code));
        let at = self.watched.iter().position(|room| {
            room.code.eq_ignore_ascii_case(code) || entry.is_some_and(|entry| room.is(entry))
        });
        if let Some(at) = at {
            // The others keep their order, which says whose watch ends next.
            self.watched[..=at].rotate_right(1);
            return WatchChange { watch: None, unwatch: None };
        }
        let watch = self.number();
        self.watched.insert(0, Room::new(watch, code, password));
        let unwatch = self.watched.get(MOST).map(|room| room.watch);
        self.watched.truncate(MOST);
        WatchChange { watch: Some(watch), unwatch }
    }

    /// Tries the open room again, with this password. Returns the old number of its watch and the new one.
    pub fn retry(&mut self, password: Option<Secret>) -> Option<(u64, u64)> {
        let watch = self.number();
        let room = self.watched.first_mut()?;
        let before = room.watch;
        // Under a new number, so that late news of the refused watch matches no room.
        room.retry(watch, password);
        Some((before, watch))
    }

    /// Continues the numbers of `other`, so that late news of its rooms matches no room of these.
    pub fn number_after(&mut self, other: &Self) {
        self.next = other.next;
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// Whether a room has this code, spoken or short, in upper or lower case.
pub fn has_code(summary: &RoomSummary, code: &str) -> bool {
    let room = &summary.room;
    let codes = [Some(&room.code), room.spoken_code.as_ref(), room.short_code.as_ref()];
    codes.iter().flatten().any(|own| own.eq_ignore_ascii_case(code))
}

/// A room of a list.
pub fn entry(summary: &RoomSummary) -> Entry {
    let room = &summary.room;
    Entry {
        code: room.spoken_code.as_ref().unwrap_or(&room.code).clone(),
        name: room.name.clone(),
        people: Some(summary.participant_count),
        locked: room.password_protected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::fixture::room;

    fn codes(rooms: &Rooms) -> Vec<String> {
        rooms.entries().into_iter().map(|entry| entry.code).collect()
    }

    #[test]
    fn a_room_is_one_room_under_all_its_codes() {
        let mut rooms = Rooms { listed: Reading::Known(vec![room()]), ..Rooms::default() };
        assert_eq!(rooms.look_at("swift-eagle-42", None).watch, Some(1));
        assert_eq!(rooms.look_at("k7qwtz", None).watch, None);
        assert_eq!(codes(&rooms), ["swift-eagle-42"]);
        assert_eq!(rooms.look_at("ABC234", None).watch, Some(2));
        assert_eq!(codes(&rooms), ["swift-eagle-42", "ABC234"]);
        assert_eq!(rooms.open().unwrap().code, "ABC234");
    }

    #[test]
    fn no_more_than_a_few_rooms_are_watched() {
        let mut rooms = Rooms::default();
        for at in 0..MOST {
            assert!(rooms.look_at(&format!("r{at}"), None).unwatch.is_none());
        }
        rooms.look_at("r0", None);
        assert_eq!(rooms.look_at("new", None).unwatch, Some(2));
        assert_eq!(rooms.watched().len(), MOST);
    }

    #[test]
    fn a_room_is_tried_anew_under_another_number() {
        let mut rooms = Rooms::default();
        rooms.look_at("a", None);
        assert_eq!(rooms.retry(Some("pw".into())), Some((1, 2)));
        assert!(rooms.by_watch(1).is_none() && rooms.by_watch(2).is_some());
    }
}
