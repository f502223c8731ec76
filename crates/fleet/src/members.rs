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

/// What a server says of itself. `F` is what the caller wants to be known.
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
    /// What else it says.
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
