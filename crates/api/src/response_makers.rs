//! Which participant made which response: a later request about the response goes to the same participant.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use base::{JobId, ProviderId, RoomId};
use protocol::openai::ResponseIdReader;
use rooms::Room;

/// The most responses that are remembered, per room and in total.
const MOST_OF_ROOM: usize = 1_000;
const MOST: usize = 50_000;

/// How long a response is remembered.
const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest id that is remembered, in bytes.
const LONGEST_ID: usize = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// A participant.
    Provider(ProviderId),
    /// The server itself: it translated the answer of another API into a response, which no participant stores.
    Translation,
}

#[derive(Default)]
pub(crate) struct ResponseMakers(Mutex<All>);

#[derive(Default)]
struct All {
    rooms: HashMap<RoomId, OfRoom>,
    by_age: BTreeMap<u64, RoomId>,
    next: u64,
}

/// The responses of one room; never empty.
#[derive(Default)]
struct OfRoom {
    by_id: HashMap<Arc<str>, Entry>,
    by_age: BTreeMap<u64, Arc<str>>,
}

struct Entry {
    number: u64,
    maker: Maker,
    at: Instant,
}

impl ResponseMakers {
    /// Remembers who made a response. The first maker of an id stays.
    pub(crate) fn note(&self, room: &RoomId, id: &str, maker: Maker, now: Instant) {
        if !is_id(id) {
            return;
        }
        let mut all = self.lock();
        all.forget_old(now);
        let known = all.rooms.get(room).is_some_and(|of_room| of_room.by_id.contains_key(id));
        if !known {
            all.make_room(room);
            all.add(room, id, maker, now);
        }
    }

    pub(crate) fn maker(&self, room: &RoomId, id: &str, now: Instant) -> Option<Maker> {
        let all = self.lock();
        let entry = all.rooms.get(room)?.by_id.get(id)?;
        (now.saturating_duration_since(entry.at) < REMEMBERED).then_some(entry.maker)
    }

    /// Forgets a deleted response.
    pub(crate) fn forget(&self, room: &RoomId, id: &str) {
        let mut all = self.lock();
        let number = all.rooms.get(room).and_then(|of_room| of_room.by_id.get(id));
        if let Some(number) = number.map(|entry| entry.number) {
            all.remove(number);
        }
    }

    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl All {
    fn add(&mut self, room: &RoomId, id: &str, maker: Maker, at: Instant) {
        let (number, id) = (self.next, Arc::<str>::from(id));
        self.next += 1;
        self.by_age.insert(number, room.clone());
        let of_room = self.rooms.entry(room.clone()).or_default();
        of_room.by_age.insert(number, Arc::clone(&id));
        of_room.by_id.insert(id, Entry { number, maker, at });
    }

    /// Forgets the oldest response of this room if the room is full, else the oldest of all if all are too many.
    fn make_room(&mut self, room: &RoomId) {
        let of_room = self.rooms.get(room).filter(|of_room| of_room.by_id.len() >= MOST_OF_ROOM);
        let oldest_of_room = of_room.and_then(|of_room| of_room.by_age.keys().next().copied());
        let too_many = self.by_age.len() >= MOST;
        let oldest = || self.by_age.keys().next().copied().filter(|_| too_many);
        if let Some(number) = oldest_of_room.or_else(oldest) {
            self.remove(number);
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((&number, room)) = self.by_age.first_key_value() {
            let at = self.rooms.get(room).and_then(|of_room| of_room.at(number));
            if at.is_some_and(|at| now.saturating_duration_since(at) < REMEMBERED) {
                return;
            }
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u64) {
        let Some(room) = self.by_age.remove(&number) else { return };
        let Some(of_room) = self.rooms.get_mut(&room) else { return };
        if let Some(id) = of_room.by_age.remove(&number) {
            of_room.by_id.remove(&id);
        }
        if of_room.by_id.is_empty() {
            self.rooms.remove(&room);
        }
    }
}

impl OfRoom {
    fn at(&self, number: u64) -> Option<Instant> {
        self.by_id.get(self.by_age.get(&number)?).map(|entry| entry.at)
    }
}

/// Records which participant made a response, while the answer passes to the client.
pub(crate) struct Recorder {
    makers: Arc<ResponseMakers>,
    room: RoomId,
    job: JobId,
    reader: ResponseIdReader,
}

impl Recorder {
    /// The recorder of an answer to this job.
    pub(crate) fn new(makers: Arc<ResponseMakers>, room: &Room, job: JobId) -> Box<Self> {
        let (room, reader) = (room.id().clone(), ResponseIdReader::default());
        Box::new(Self { makers, room, job, reader })
    }

    /// Reads a piece of the answer that passes. `is_over`: whether no other piece follows. Returns the response's id
    /// once, as soon as it is complete.
    pub(crate) fn passed(&mut self, chunk: Option<&[u8]>, is_over: bool) -> Option<String> {
        let found = chunk.and_then(|chunk| self.reader.feed(chunk));
        // The body may not be polled again after the last of the announced bytes, so the end is looked for now.
        found.or_else(|| is_over.then(|| self.reader.end()).flatten())
    }

    pub(crate) fn note(&self, id: &str, provider: ProviderId) {
        let translated = id.strip_prefix("resp_") == Some(&self.job.digits());
        let maker = if translated { Maker::Translation } else { Maker::Provider(provider) };
        self.makers.note(&self.room, id, maker, Instant::now());
    }
}

/// Whether a text is a response's id as backends make them, and safe as a segment of a path.
fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=LONGEST_ID).contains(&text.len())
        && text.bytes().all(is_plain)
        && text.bytes().any(|byte| byte != b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAKER: Maker = Maker::Provider(ProviderId::from_random(1));

    fn room(number: usize) -> RoomId {
        RoomId::from(format!("room-{number}"))
    }

    #[test]
    fn an_id_is_its_first_makers_in_its_room_alone() {
        let (made, now) = (ResponseMakers::default(), Instant::now());
        made.note(&room(1), "resp_1", MAKER, now);
        made.note(&room(1), "resp_1", Maker::Translation, now);
        assert_eq!(made.maker(&room(1), "resp_1", now), Some(MAKER));
        assert_eq!(made.maker(&room(2), "resp_1", now), None);
        made.forget(&room(1), "resp_1");
        made.forget(&room(1), "resp_1");
        assert_eq!(made.maker(&room(1), "resp_1", now), None);
        assert!(made.lock().rooms.is_empty() && made.lock().by_age.is_empty());
    }

    #[test]
    fn text_that_would_change_the_path_is_no_id() {
        let (made, now) = (ResponseMakers::default(), Instant::now());
        let long = "x".repeat(LONGEST_ID + 1);
        for id in ["", "..", "a/b", "a?b", "a%2fb", "a b", "é", "a\n", &long] {
            made.note(&room(1), id, MAKER, now);
            assert_eq!(made.maker(&room(1), id, now), None, "{id}");
        }
    }

    #[test]
    fn a_room_keeps_its_newest_and_takes_nothing_from_others() {
        let (made, now) = (ResponseMakers::default(), Instant::now());
        made.note(&room(0), "first", MAKER, now);
        for number in 0..=MOST_OF_ROOM {
            made.note(&room(1), &format!("resp_{number}"), MAKER, now);
        }
        assert_eq!(made.lock().by_age.len(), MOST_OF_ROOM + 1);
        assert_eq!(made.maker(&room(1), "resp_0", now), None);
        assert_eq!(made.maker(&room(1), "resp_1", now), Some(MAKER));
        assert_eq!(made.maker(&room(0), "first", now), Some(MAKER));
    }

    #[test]
    fn all_rooms_together_are_bounded_and_what_is_old_is_forgotten() {
        let (made, now) = (ResponseMakers::default(), Instant::now());
        for number in 0..=MOST {
            made.note(&room(number % 100), &format!("resp_{number}"), MAKER, now);
        }
        assert_eq!(made.lock().by_age.len(), MOST);
        assert_eq!(made.maker(&room(0), "resp_0", now), None, "the oldest of all");
        let later = now + REMEMBERED;
        assert_eq!(made.maker(&room(1), "resp_1", later), None);
        made.note(&room(1), "resp_new", MAKER, later);
        assert_eq!(made.lock().by_age.len(), 1);
    }
}
