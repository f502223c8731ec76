//! Limits on addresses that try too many codes or passwords.
//!
//! Unknown codes and wrong passwords are counted for each address, apart for programs, for web pages of
//! other origins, and for what comes by way of a proxy. After ten within a minute,
//! requests from the address are refused, except for rooms that it already knows: a member is not
//! cut off by a neighbour behind the same address. After a hundred, those are refused too:
//! otherwise a client that shares an address with a member could try passwords without end.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    time::Duration,
};

use base::{ClientAddress, RoomId};

/// Attempts are counted within this many milliseconds.
const WINDOW: u64 = 60_000;

/// From this number on, only known rooms are let through.
const MOST: usize = 10;

/// From this number on, everything is refused.
const MOST_OF_ALL: usize = 100;

/// How long a room counts as known, in milliseconds.
const KNOWN: u64 = 3_600_000;

/// The least time between two notes of a known room, in milliseconds.
const NOTED: u64 = 60_000;

/// The most known rooms of an address.
const MAX_KNOWN: usize = 64;

/// The most addresses that are remembered.
const MAX_SOURCES: usize = 10_000;

/// The degree to which an address knows a room; a higher one includes the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Knowledge {
    /// It knows its code.
    Code,
    /// It has shown the room's password, or the room has none.
    Password,
}

#[derive(Default)]
struct Record {
    /// The times of wrong attempts, the oldest first; no more than are counted.
    wrong: VecDeque<u64>,
    known: HashMap<RoomId, (Knowledge, u64)>,
    turn: u64,
}

/// The attempts of each address, pure: times are in milliseconds.
#[derive(Default)]
pub(crate) struct Attempts {
    records: HashMap<ClientAddress, Record>,
    /// The order in which records are forgotten.
    order: BTreeMap<u64, ClientAddress>,
    next: u64,
}

impl Attempts {
    /// The time until an address may try a room that it does not know.
    pub(crate) fn wait(&mut self, from: ClientAddress, now: u64) -> Option<Duration> {
        self.wait_below(from, MOST, now)
    }

    /// The time until an address may use a room that it knows this well, or does not know.
    pub(crate) fn wait_for(
        &mut self,
        room: &RoomId,
        at_least: Knowledge,
        from: ClientAddress,
        now: u64,
    ) -> Option<Duration> {
        let wait = self.wait(from, now)?;
        let record = self.records.get(&from.party())?;
        let knows = |&&(knows, at): &&(Knowledge, u64)| knows >= at_least && now < at + KNOWN;
        match record.known.get(room).filter(knows) {
            Some(_) => self.wait_below(from, MOST_OF_ALL, now),
            None => Some(wait),
        }
    }

    /// The time until it may try a password again, for somebody who holds a token of the room.
    pub(crate) fn wait_of_holder(&mut self, from: ClientAddress, now: u64) -> Option<Duration> {
        self.wait_below(from, MOST_OF_ALL, now)
    }

    fn wait_below(&mut self, from: ClientAddress, most: usize, now: u64) -> Option<Duration> {
        let record = self.records.get_mut(&from.party())?;
        while record.wrong.front().is_some_and(|&at| at + WINDOW <= now) {
            record.wrong.pop_front();
        }
        let deciding = record.wrong.len().checked_sub(most)?;
        let until = record.wrong.get(deciding)? + WINDOW;
        Some(Duration::from_millis(until.saturating_sub(now)))
    }

    /// Counts an unknown code or a wrong password from an address.
    pub(crate) fn wrong(&mut self, from: ClientAddress, now: u64) {
        let record = self.record(from.party());
        // More are not needed to decide, so an address costs a bounded record.
        if record.wrong.len() == MOST_OF_ALL {
            record.wrong.pop_front();
        }
        record.wrong.push_back(now);
    }

    /// Notes that an address knows a room.
    pub(crate) fn right(&mut self, room: &RoomId, knows: Knowledge, from: ClientAddress, now: u64) {
        let source = from.party();
        let is_noted = |record: &Record| {
            let noted = |&(known, at): &(Knowledge, u64)| known >= knows && now < at + NOTED;
            record.known.get(room).is_some_and(noted)
        };
        // Every request comes here: most must not change the map.
        if self.records.get(&source).is_some_and(is_noted) {
            return;
        }
        let record = self.record(source);
        let known = record.known.get(room);
        let knows = known.filter(|(_, at)| now < at + KNOWN).map_or(knows, |(k, _)| knows.max(*k));
        record.known.insert(room.clone(), (knows, now));
        if record.known.len() > MAX_KNOWN {
            forget_oldest(&mut record.known);
        }
    }

    /// The record of an address, which becomes the last to be forgotten.
    fn record(&mut self, source: ClientAddress) -> &mut Record {
        if self.records.len() >= MAX_SOURCES && !self.records.contains_key(&source) {
            self.forget_oldest();
        }
        self.next += 1;
        let record = self.records.entry(source).or_default();
        self.order.remove(&record.turn);
        record.turn = self.next;
        self.order.insert(self.next, source);
        record
    }

    fn forget_oldest(&mut self) {
        if let Some((_, source)) = self.order.pop_first() {
            self.records.remove(&source);
        }
    }
}

fn forget_oldest(known: &mut HashMap<RoomId, (Knowledge, u64)>) {
    let oldest = known.iter().min_by_key(|(_, (_, at))| *at).map(|(room, _)| room.clone());
    if let Some(oldest) = oldest {
        known.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::*;

    const HERE: ClientAddress = ClientAddress::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));

    fn at(address: impl Into<IpAddr>) -> ClientAddress {
        ClientAddress::new(address.into())
    }

    fn tried(times: usize, now: u64) -> Attempts {
        let mut attempts = Attempts::default();
        (0..times).for_each(|_| attempts.wrong(HERE, now));
        attempts
    }

    #[test]
    fn after_ten_within_a_minute_an_address_has_to_wait() {
        let mut attempts = tried(9, 1_000);
        assert_eq!(attempts.wait(HERE, 1_000), None);
        attempts.wrong(HERE, 31_000);
        assert_eq!(attempts.wait(HERE, 31_000), Some(Duration::from_secs(30)));
        assert_eq!(attempts.wait(at([10, 0, 0, 2]), 31_000), None, "another address");
        assert_eq!(attempts.wait(HERE, 61_000), None);
        (0..9).for_each(|_| attempts.wrong(HERE, 61_000));
        assert_eq!(attempts.wait(HERE, 61_000), Some(Duration::from_secs(30)), "one is younger");
    }

    #[test]
    fn rooms_that_it_knows_are_let_through_for_an_hour() {
        let (room, other) = (RoomId::from("a"), RoomId::from("b"));
        let mut attempts = Attempts::default();
        attempts.right(&room, Knowledge::Password, HERE, 0);
        let mut late = KNOWN - 1;
        (0..10).for_each(|_| attempts.wrong(HERE, late));
        assert_eq!(attempts.wait_for(&room, Knowledge::Password, HERE, late), None);
        assert!(attempts.wait_for(&other, Knowledge::Code, HERE, late).is_some());
        late += 1;
        assert!(attempts.wait_for(&room, Knowledge::Code, HERE, late).is_some());
    }

    #[test]
    fn the_code_does_not_stand_for_the_password() {
        let room = RoomId::from("a");
        let mut attempts = tried(10, 0);
        attempts.right(&room, Knowledge::Code, HERE, 0);
        assert_eq!(attempts.wait_for(&room, Knowledge::Code, HERE, 0), None);
        assert!(attempts.wait_for(&room, Knowledge::Password, HERE, 0).is_some());
        attempts.right(&room, Knowledge::Password, HERE, 0);
        attempts.right(&room, Knowledge::Code, HERE, NOTED);
        assert_eq!(attempts.wait_for(&room, Knowledge::Password, HERE, NOTED - 1), None, "kept");
    }

    #[test]
    fn after_a_hundred_known_rooms_are_refused_too() {
        let room = RoomId::from("a");
        let mut attempts = Attempts::default();
        attempts.right(&room, Knowledge::Password, HERE, 0);
        (0..MOST_OF_ALL - 1).for_each(|_| attempts.wrong(HERE, 0));
        assert_eq!(attempts.wait_for(&room, Knowledge::Password, HERE, 0), None);
        (0..MOST_OF_ALL).for_each(|_| attempts.wrong(HERE, 0));
        assert!(attempts.wait_for(&room, Knowledge::Password, HERE, 0).is_some());
        assert_eq!(attempts.records[&HERE.party()].wrong.len(), MOST_OF_ALL, "bounded");
    }

    #[test]
    fn pages_and_clients_of_a_proxy_use_up_nobody_elses_attempts() {
        let mut attempts = Attempts::default();
        for stranger in [HERE.of_foreign_page(), HERE.by_proxy()] {
            (0..MOST_OF_ALL).for_each(|_| attempts.wrong(stranger, 0));
            assert!(attempts.wait(stranger, 0).is_some());
        }
        assert_eq!(attempts.wait(HERE, 0), None);
    }

    #[test]
    fn an_ipv6_customer_is_one_address_and_a_mapped_one_is_ipv4() {
        let mut attempts = Attempts::default();
        for number in 0..10u16 {
            attempts.wrong(at([0x2001, 0xdb8, 1, 1, 0, 0, 0, number]), 0);
        }
        let neighbour = Ipv6Addr::new(0x2001, 0xdb8, 1, 1, 9, 9, 9, 9);
        assert!(attempts.wait(at(neighbour), 0).is_some());
        assert!(attempts.wait(at([0x2001, 0xdb8, 1, 2, 0, 0, 0, 0]), 0).is_none());
        let mut attempts = tried(10, 0);
        assert!(attempts.wait(at("::ffff:10.0.0.1".parse::<IpAddr>().unwrap()), 0).is_some());
    }

    #[test]
    fn addresses_and_their_rooms_are_bounded_and_the_oldest_are_forgotten() {
        let mut attempts = tried(10, 0);
        for number in 0..MAX_SOURCES {
            let [_, a, b, c] = u32::try_from(number).unwrap().to_be_bytes();
            attempts.wrong(at([11, a, b, c]), 0);
        }
        assert_eq!((attempts.records.len(), attempts.order.len()), (MAX_SOURCES, MAX_SOURCES));
        assert_eq!(attempts.wait(HERE, 0), None, "forgotten");
        for number in 0..2 * MAX_KNOWN {
            let room = RoomId::from(format!("r{number}"));
            attempts.right(&room, Knowledge::Code, HERE, number as u64);
        }
        let known = &attempts.records[&HERE.party()].known;
        assert_eq!(known.len(), MAX_KNOWN);
        assert!(known.contains_key("r127") && !known.contains_key("r63"));
        assert_eq!((attempts.records.len(), attempts.order.len()), (MAX_SOURCES, MAX_SOURCES));
    }
}
