//! Which fellows are alive.
//!
//! Each server writes a record of itself, under its id, to a place that all servers watch. It writes at
//! least every [`BEAT`], and soon after a change. Each record has a higher beat than the one before, and
//! a server that hears no new beat of a fellow for [`SILENCE`] by its own clock forgets it. Wall clocks
//! are never compared.
//!
//! A record that lies there may be a dead server's. So a fellow joins with its second beat, and each
//! server answers the first beat of another one with a beat of its own: a newcomer, which writes twice at
//! its start, knows all others after a moment.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use crate::server::{ServerId, ServerName};

/// The longest time between two records of a server.
pub const BEAT: Duration = Duration::from_millis(800);
/// The shortest time between two records of a server.
pub const SHORTEST: Duration = Duration::from_millis(50);
/// After this time without a new beat a fellow is forgotten: three records in a row are missing.
pub const SILENCE: Duration = Duration::from_millis(2_500);
/// The most fellows of a server.
pub const MOST_FELLOWS: usize = 64;
/// The most records that are watched for a second beat, fellows included.
const MOST_WATCHED: usize = 256;

/// A server's record about itself. `F` is what the caller wants to be known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<F> {
    /// Its id.
    pub id: ServerId,
    /// Its name.
    pub name: ServerName,
    /// The number of this record among the server's.
    pub beat: u64,
    /// The number of changes so far: two records with the same number say the same.
    pub revision: u64,
    /// Whether it takes jobs.
    pub state: State,
    /// The other facts about itself.
    pub facts: F,
}

/// Whether a server takes jobs of its fellows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does.
    Active,
    /// It stops soon: nothing new is sent to it.
    Draining,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input<F> {
    /// The server's own facts changed.
    Facts(F),
    /// The server's own state changed.
    State(State),
    /// A record was seen. Records of this server itself and old ones are ignored.
    Seen(Record<F>),
    /// A record was deleted: that server stopped.
    Deleted(ServerId),
    /// The transport works.
    Connected,
    /// The transport does not work. Fellows are kept for [`SILENCE`].
    Disconnected,
}

/// One action, to be carried out in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output<F> {
    /// Write this server's record.
    Publish(Record<F>),
    /// A fellow is there.
    Joined(Record<F>),
    /// A fellow says something else than before.
    Changed(Record<F>),
    /// A fellow is gone.
    Left(ServerId),
    /// A fellow has this server's name. Both go on; see [`Members::same_name`].
    SameName {
        /// The fellow.
        other: ServerId,
    },
    /// A server is not taken as a fellow, since there are [`MOST_FELLOWS`] already. Put out once for
    /// each time that it comes.
    Refused(ServerId),
}

/// The fellows of a server.
#[derive(Debug)]
pub struct Members<F> {
    own: Record<F>,
    connected: bool,
    /// When the last record was written, and when the next is due.
    last: Option<Instant>,
    next: Option<Instant>,
    watched: BTreeMap<ServerId, Watched<F>>,
    fellows: usize,
    outputs: VecDeque<Output<F>>,
}

#[derive(Debug)]
struct Watched<F> {
    record: Record<F>,
    heard: Instant,
    standing: Standing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// One record was seen.
    Found,
    Fellow,
    Refused,
}

impl<F: Clone> Members<F> {
    /// A server without fellows and without transport.
    pub fn new(id: ServerId, name: ServerName, facts: F) -> Self {
        let own = Record { id, name, beat: 0, revision: 0, state: State::Active, facts };
        Self {
            own,
            connected: false,
            last: None,
            next: None,
            watched: BTreeMap::new(),
            fellows: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Handles one event. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, input: Input<F>) {
        match input {
            Input::Facts(facts) => self.change(now, |own| own.facts = facts),
            Input::State(state) => self.change(now, |own| own.state = state),
            Input::Seen(record) => self.seen(now, record),
            Input::Deleted(id) => self.forget(id),
            Input::Connected => self.connected(now),
            Input::Disconnected => (self.connected, self.next) = (false, None),
        }
    }

    /// Handles every deadline that is due. Poll the outputs afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        let silent = self.watched.iter().filter(|(_, it)| it.heard + SILENCE <= now);
        let silent: Vec<_> = silent.map(|(id, _)| *id).collect();
        silent.into_iter().for_each(|id| self.forget(id));
        if self.next.is_some_and(|at| at <= now) {
            self.publish(now);
        }
    }

    /// The next output, to be carried out in order.
    pub fn poll_output(&mut self) -> Option<Output<F>> {
        self.outputs.pop_front()
    }

    /// When to call [`Members::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.watched.values().map(|it| it.heard + SILENCE).chain(self.next).min()
    }

    /// The id of this start of the server.
    pub fn id(&self) -> ServerId {
        self.own.id
    }

    /// The fellows, by id.
    pub fn fellows(&self) -> impl Iterator<Item = &Record<F>> {
        let fellows = self.watched.values().filter(|it| it.standing == Standing::Fellow);
        fellows.map(|it| &it.record)
    }

    /// A fellow.
    pub fn fellow(&self, id: ServerId) -> Option<&Record<F>> {
        let found = self.watched.get(&id).filter(|it| it.standing == Standing::Fellow);
        found.map(|it| &it.record)
    }

    /// A fellow that has this server's name and a lower id. Of two servers with one name the one with
    /// the greater id says so in its health: it is as likely the newer, and one complaint is enough.
    pub fn same_name(&self) -> Option<ServerId> {
        let namesake = self.fellows().find(|it| it.name == self.own.name && it.id < self.own.id);
        namesake.map(|it| it.id)
    }

    fn change(&mut self, now: Instant, change: impl FnOnce(&mut Record<F>)) {
        change(&mut self.own);
        self.own.revision += 1;
        self.publish_soon(now);
    }

    fn connected(&mut self, now: Instant) {
        if !self.connected {
            self.connected = true;
            self.publish_soon(now);
        }
    }

    /// Writes now, or as soon as the last record is old enough.
    fn publish_soon(&mut self, now: Instant) {
        if !self.connected {
            return;
        }
        let at = self.last.map_or(now, |last| last + SHORTEST);
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
        if at <= now {
            self.publish(now);
        }
    }

    fn publish(&mut self, now: Instant) {
        self.own.beat += 1;
        self.last = Some(now);
        // The first record alone lets nobody join.
        self.next = Some(now + if self.own.beat == 1 { SHORTEST } else { BEAT });
        self.outputs.push_back(Output::Publish(self.own.clone()));
    }

    fn seen(&mut self, now: Instant, record: Record<F>) {
        let id = record.id;
        if id == self.own.id {
            return;
        }
        let Some(it) = self.watched.get_mut(&id) else {
            return self.found(now, record);
        };
        if record.beat <= it.record.beat {
            return;
        }
        let changed = record.revision != it.record.revision;
        (it.record, it.heard) = (record, now);
        match it.standing {
            Standing::Fellow if changed => {
                let record = it.record.clone();
                self.outputs.push_back(Output::Changed(record));
            }
            Standing::Fellow => {}
            Standing::Found | Standing::Refused => self.join(id),
        }
    }

    /// Notes a server that was not known, and shows it that this one is there.
    fn found(&mut self, now: Instant, record: Record<F>) {
        if self.watched.len() < MOST_WATCHED {
            let watched = Watched { heard: now, standing: Standing::Found, record };
            self.watched.insert(watched.record.id, watched);
            self.publish_soon(now);
        }
    }

    fn join(&mut self, id: ServerId) {
        let is_full = self.fellows >= MOST_FELLOWS;
        let Some(it) = self.watched.get_mut(&id) else { return };
        if is_full {
            if it.standing != Standing::Refused {
                it.standing = Standing::Refused;
                self.outputs.push_back(Output::Refused(id));
            }
            return;
        }
        it.standing = Standing::Fellow;
        self.fellows += 1;
        let same_name = it.record.name == self.own.name;
        self.outputs.push_back(Output::Joined(it.record.clone()));
        if same_name {
            self.outputs.push_back(Output::SameName { other: id });
        }
    }

    fn forget(&mut self, id: ServerId) {
        let gone = self.watched.remove(&id);
        if gone.is_some_and(|it| it.standing == Standing::Fellow) {
            self.fellows -= 1;
            self.outputs.push_back(Output::Left(id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn id(number: u128) -> ServerId {
        ServerId::from_random(number)
    }

    fn server(number: u128) -> Members<u8> {
        Members::new(id(number), format!("n{number}").as_str().into(), 0)
    }

    fn record(number: u128, beat: u64) -> Record<u8> {
        let name = format!("n{number}").as_str().into();
        Record { id: id(number), name, beat, revision: 0, state: State::Active, facts: 0 }
    }

    fn outputs(members: &mut Members<u8>) -> Vec<Output<u8>> {
        std::iter::from_fn(|| members.poll_output()).collect()
    }

    fn seen(members: &mut Members<u8>, now: Instant, record: Record<u8>) -> Vec<Output<u8>> {
        members.handle(now, Input::Seen(record));
        outputs(members)
    }

    /// The outputs of the deadlines up to this time.
    fn wait(members: &mut Members<u8>, until: Instant) -> Vec<(Instant, Output<u8>)> {
        let mut all = Vec::new();
        while let Some(at) = members.poll_timeout().filter(|at| *at <= until) {
            members.handle_timeout(at);
            all.extend(outputs(members).into_iter().map(|output| (at, output)));
        }
        all
    }

    /// A server with this fellow.
    fn with_fellow(now: Instant, number: u128) -> Members<u8> {
        let mut members = server(1);
        for beat in 1..=2 {
            members.handle(now, Input::Seen(record(number, beat)));
        }
        outputs(&mut members);
        members
    }

    #[test]
    fn a_record_is_written_twice_at_first_then_at_each_beat_and_at_once_after_a_change() {
        let start = Instant::now();
        let mut members = server(1);
        members.handle(start, Input::Facts(1));
        assert_eq!(members.poll_timeout(), None, "there is nowhere to write it");
        members.handle(start, Input::Connected);
        assert!(matches!(outputs(&mut members)[..], [Output::Publish(_)]));
        let written = wait(&mut members, start + SHORTEST + BEAT);
        let times: Vec<_> = written.iter().map(|(at, _)| *at - start).collect();
        assert_eq!(times, [SHORTEST, SHORTEST + BEAT]);
        let now = start + SHORTEST + BEAT + MS;
        for facts in [2, 3] {
            members.handle(now, Input::Facts(facts));
        }
        assert_eq!(outputs(&mut members), [], "a moment after the last");
        members.handle(now, Input::State(State::Draining));
        let written = wait(&mut members, now + SHORTEST);
        let [(at, Output::Publish(record))] = &written[..] else { panic!("{written:?}") };
        assert_eq!(*at, now - MS + SHORTEST);
        assert_eq!((record.facts, record.state, record.beat), (3, State::Draining, 4));
        members.handle(now, Input::Disconnected);
        assert_eq!(members.poll_timeout(), None);
    }

    #[test]
    fn a_fellow_joins_with_its_second_beat_and_is_forgotten_after_silence() {
        let start = Instant::now();
        let mut members = server(1);
        assert_eq!(seen(&mut members, start, record(1, 9)), [], "its own");
        assert_eq!(seen(&mut members, start, record(2, 7)), [], "it may be a dead one's");
        assert_eq!(seen(&mut members, start, record(2, 7)), [], "the same again");
        let joined = Output::Joined(record(2, 8));
        assert_eq!(seen(&mut members, start, record(2, 8)), [joined]);
        let later = start + Duration::from_secs(2);
        assert_eq!(seen(&mut members, later, record(2, 8)), [], "no sign of life");
        let left = wait(&mut members, start + Duration::from_secs(9));
        assert_eq!(left, [(start + SILENCE, Output::Left(id(2)))]);
        assert_eq!(members.poll_timeout(), None);
        assert!(SILENCE < Duration::from_secs(3));
    }

    #[test]
    fn three_lost_records_are_needed_for_silence() {
        assert!(BEAT * 3 < SILENCE && BEAT * 4 > SILENCE && BEAT < Duration::from_secs(1));
    }

    #[test]
    fn a_change_is_put_out_and_a_deleted_record_is_a_farewell() {
        let now = Instant::now();
        let mut members = with_fellow(now, 2);
        let changed = Record { revision: 1, state: State::Draining, ..record(2, 3) };
        assert_eq!(seen(&mut members, now, changed.clone()), [Output::Changed(changed)]);
        members.handle(now, Input::Deleted(id(2)));
        assert_eq!(outputs(&mut members), [Output::Left(id(2))]);
        assert_eq!(members.fellows().count(), 0);
    }

    #[test]
    fn without_a_transport_all_fellows_leave_after_the_same_silence() {
        let now = Instant::now();
        let mut members = with_fellow(now, 2);
        members.handle(now + MS, Input::Disconnected);
        assert_eq!(wait(&mut members, now + SILENCE), [(now + SILENCE, Output::Left(id(2)))]);
    }

    #[test]
    fn a_newcomer_is_answered_at_once() {
        let start = Instant::now();
        let mut members = server(1);
        members.handle(start, Input::Connected);
        wait(&mut members, start + MS * 200);
        outputs(&mut members);
        let written = seen(&mut members, start + MS * 200, record(2, 1));
        assert!(matches!(written[..], [Output::Publish(_)]), "{written:?}");
    }

    #[test]
    fn of_two_servers_with_one_name_the_greater_says_so() {
        let now = Instant::now();
        for (own, other, says) in [(1, 2, None), (2, 1, Some(id(1)))] {
            let mut members: Members<u8> = Members::new(id(own), "same".into(), 0);
            let of = |beat| Record { name: "same".into(), ..record(other, beat) };
            members.handle(now, Input::Seen(of(1)));
            let both = seen(&mut members, now, of(2));
            assert_eq!(both[1..], [Output::SameName { other: id(other) }]);
            assert_eq!(members.same_name(), says);
            members.handle(now, Input::Deleted(id(other)));
            assert_eq!(members.same_name(), None);
        }
    }

    #[test]
    fn more_than_the_most_fellows_are_refused_until_one_leaves() {
        let now = Instant::now();
        let mut members = server(0);
        let last = MOST_FELLOWS as u128 + 1;
        for (number, beat) in (1..=last).flat_map(|number| [(number, 1), (number, 2)]) {
            members.handle(now, Input::Seen(record(number, beat)));
        }
        let refused = |output: &Output<u8>| matches!(output, Output::Refused(_));
        assert_eq!(outputs(&mut members).iter().filter(|it| refused(it)).count(), 1);
        assert_eq!(members.fellows().count(), MOST_FELLOWS);
        assert_eq!(seen(&mut members, now, record(last, 3)), [], "it is said once");
        members.handle(now, Input::Deleted(id(1)));
        outputs(&mut members);
        assert_eq!(seen(&mut members, now, record(last, 4)), [Output::Joined(record(last, 4))]);
    }

    #[test]
    fn records_that_are_only_found_are_bounded() {
        let now = Instant::now();
        let mut members = server(0);
        for number in 1..=MOST_WATCHED as u128 + 9 {
            members.handle(now, Input::Seen(record(number, 1)));
        }
        assert_eq!(members.watched.len(), MOST_WATCHED);
        assert!(wait(&mut members, now + SILENCE).is_empty(), "none was a fellow");
        assert!(members.watched.is_empty());
    }
}
