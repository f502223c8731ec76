//! The machine: its state, and the handling of each input.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    claims::Claims,
    clock::Clock,
    config::Config,
    dot::Incarnation,
    entry::{Entry, Key, Kind},
    fact::{Fact, Stored},
    input::{Input, LinkId, Refused},
    knowledge::Knowledge,
    link::Link,
    message::Message,
    notice::Notice,
    outbox::Outbox,
    output::Output,
    random::Random,
    table::{Layer, Table},
};

/// The most notices whose last time is remembered.
const MOST_NOTICES: usize = 256;
/// The same notice is not repeated before this time has passed.
const NOTICE_EVERY: Duration = Duration::from_secs(600);

/// One member's copy of the cluster's objects. See the crate's documentation for how it is driven.
#[derive(Debug)]
pub struct Replica {
    pub(crate) config: Config,
    pub(crate) random: Random,
    pub(crate) incarnation: Incarnation,
    /// The times of the last call. `wall` is since 1970, by the machine's own clock.
    pub(crate) now: Instant,
    pub(crate) wall: Duration,
    pub(crate) started: Instant,
    pub(crate) table: Table,
    pub(crate) knowledge: Knowledge,
    pub(crate) generation: u64,
    pub(crate) clock: Clock,
    pub(crate) links: BTreeMap<LinkId, Link>,
    pub(crate) claims: Claims,
    pub(crate) pulls: u64,
    /// The sessions that this member runs, as it wrote them last.
    pub(crate) own: BTreeMap<Key, Arc<Entry>>,
    pub(crate) expected: BTreeSet<Key>,
    /// Sessions whose shown version changed otherwise than by a write of this member.
    pub(crate) touched: BTreeSet<Key>,
    pub(crate) silent_until: Option<Instant>,
    /// When a new write of each incarnation was last noted, in seconds since the start.
    pub(crate) last_noted: BTreeMap<Incarnation, i64>,
    pub(crate) tidy_at: Option<Instant>,
    pub(crate) outbox: Outbox,
    notices: BTreeMap<Notice, Instant>,
}

impl Replica {
    /// A replica of what is on the disk. `incarnation` is 64 fresh random bits, `seed` spreads the
    /// timers, and `wall` is the time since 1970.
    pub fn new(
        config: Config,
        seed: u64,
        incarnation: Incarnation,
        stored: Stored,
        now: Instant,
        wall: Duration,
    ) -> Self {
        let mut replica = Self {
            config,
            random: Random::new(seed),
            incarnation,
            now,
            wall,
            started: now,
            table: Table::default(),
            knowledge: Knowledge::default(),
            generation: stored.generation,
            clock: Clock::default(),
            links: BTreeMap::new(),
            claims: Claims::default(),
            pulls: 0,
            own: BTreeMap::new(),
            expected: BTreeSet::new(),
            touched: BTreeSet::new(),
            silent_until: None,
            last_noted: BTreeMap::new(),
            tidy_at: None,
            outbox: Outbox::default(),
            notices: BTreeMap::new(),
        };
        replica.restore(stored);
        replica
    }

    fn restore(&mut self, stored: Stored) {
        for (incarnation, record) in stored.records {
            self.knowledge.restore(incarnation, record);
        }
        for ((layer, key), (entry, at_ms)) in stored.entries {
            self.restore_own(layer, &key, &entry);
            self.table.set(layer, &key, Some(entry), at_ms);
        }
        self.plan_tidying();
    }

    /// Handles one event. Afterwards [`Replica::poll_output`] must be drained.
    ///
    /// # Errors
    ///
    /// A write, a delete or an adoption that was not made, with the reason. All other inputs
    /// succeed.
    pub fn handle(&mut self, now: Instant, wall: Duration, input: Input) -> Result<(), Refused> {
        self.at(now, wall);
        let result = self.step(input);
        self.finish();
        result
    }

    fn step(&mut self, input: Input) -> Result<(), Refused> {
        match input {
            Input::Write { key, owner, value, change } => {
                return self.write(&key, owner, value, change);
            }
            Input::Delete { key } => return self.delete(&key),
            Input::Adopt { key, owner, version, value } => {
                return self.adopt(&key, owner, version, value);
            }
            Input::Expect { key } => self.expect(key),
            Input::Unexpect { key } => self.unexpect(&key),
            Input::LinkUp { link, node, incarnation } => self.link_up(link, node, incarnation),
            Input::LinkDown { link } => self.link_down(link),
            Input::Message { link, message } => self.message(link, message),
            Input::Doubled => self.fall_silent(),
            Input::Kept { token } => self.outbox.kept(token),
        }
        Ok(())
    }

    fn message(&mut self, link: LinkId, message: Message) {
        if !self.links.contains_key(&link) {
            return;
        }
        match message {
            Message::Digest(digest) => self.on_digest(link, *digest),
            Message::Hint(dots) => self.on_hint(link, &dots),
            Message::Delta { key, entry } => self.on_delta(link, &key, &entry),
            Message::Pull(pull) => self.on_pull(link, pull),
            Message::More { id, batch } => self.on_more(link, id, batch),
            Message::Batch(batch) => self.on_batch(link, *batch),
            Message::Cut { id } => self.on_cut(link, id),
            Message::Buckets(prints) => self.on_buckets(link, &prints),
            Message::Keys(list) => self.on_keys(link, &list),
            Message::Repair { key, entry } => self.on_repair(&key, &entry),
        }
    }

    /// The next thing to do, until there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    /// The latest time for the next call, and the reason. A member without links has none, unless a
    /// held version or a tombstone waits.
    pub fn poll_timeout(&self) -> Option<(Instant, &'static str)> {
        let links = self.links.values().flat_map(|link| self.link_deadlines(link));
        let own = [
            self.held_due().map(|at| (at, "a held version")),
            self.tidy_at.map(|at| (at, "old tombstones and incarnations")),
            self.silent_until.map(|at| (at, "own sessions")),
        ];
        links.chain(own.into_iter().flatten()).min()
    }

    /// Handles the deadlines that have passed. Afterwards [`Replica::poll_output`] must be drained.
    pub fn handle_timeout(&mut self, now: Instant, wall: Duration) {
        self.at(now, wall);
        self.release_held();
        self.tick_links();
        if self.tidy_at.is_some_and(|at| at <= now) {
            self.tidy();
        }
        if self.silent_until.is_some_and(|at| at <= now) {
            self.speak_again();
        }
        self.finish();
    }

    fn at(&mut self, now: Instant, wall: Duration) {
        self.now = now.max(self.now);
        self.wall = wall;
    }

    /// Ends each step: repeats own sessions where needed, begins pulls, and stores the changes in
    /// one transaction.
    pub(crate) fn finish(&mut self) {
        self.settle_own();
        self.begin_pulls();
        self.plan_tidying();
        self.keep();
    }

    fn keep(&mut self) {
        let changed = self.outbox.take_changed();
        if changed.is_empty() {
            return;
        }
        let entry = |(layer, key): (Layer, Key)| {
            let entry = self.table.at(layer, &key).cloned();
            let entry = entry.map(|entry| (entry, self.table.buried_at(&key)));
            Fact::Entry { layer, key, entry }
        };
        let record = |incarnation| {
            let record = self.knowledge.get(incarnation).cloned().unwrap_or_default();
            Fact::Record { incarnation, record }
        };
        let entries = changed.entries.into_iter().map(entry);
        let records = changed.records.into_iter().map(record);
        let generation = changed.generation.then_some(Fact::Generation(self.generation));
        let facts = entries.chain(records).chain(generation).collect();
        self.outbox.keep(facts);
    }

    /// Puts a version into its place, or empties the place, and notes everything that follows from
    /// that.
    pub(crate) fn put(&mut self, layer: Layer, key: &Key, entry: Option<Arc<Entry>>) {
        let before = self.get(key).map(|entry| entry.dot);
        let wall_ms = u64::try_from(self.wall.as_millis()).unwrap_or_default();
        self.table.set(layer, key, entry, wall_ms);
        self.outbox.changed().entries.insert((layer, key.clone()));
        let after = self.get(key).cloned();
        if before != after.as_ref().map(|entry| entry.dot) {
            self.outbox.show(key, after);
        }
        if key.kind == Kind::SESSION {
            self.touched.insert(key.clone());
        }
    }

    pub(crate) fn note_changed(&mut self, incarnation: Incarnation) {
        self.outbox.changed().records.insert(incarnation);
    }

    pub(crate) fn send(&mut self, link: LinkId, message: Message) {
        self.outbox.send(link, message, self.config.limits.waiting_bytes);
    }

    /// Tells the operator, unless the same notice was given a short time ago. `about` is the notice
    /// without its changing figures.
    pub(crate) fn notice(&mut self, about: Notice, notice: Notice) {
        if self.notices.get(&about).is_some_and(|at| self.now < *at + NOTICE_EVERY) {
            return;
        }
        if self.notices.len() >= MOST_NOTICES {
            self.notices.clear();
        }
        self.notices.insert(about, self.now);
        self.outbox.push(Output::Notice(notice));
    }

    /// The time since the start, in seconds.
    pub(crate) fn elapsed_s(&self) -> i64 {
        let elapsed = self.now.saturating_duration_since(self.started).as_secs();
        i64::try_from(elapsed).unwrap_or(i64::MAX)
    }

    /// The cluster's time, since 1970.
    pub(crate) fn time(&self) -> Duration {
        self.clock.time(self.now, self.wall)
    }
}
