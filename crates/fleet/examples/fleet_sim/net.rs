//! The state between the servers: messages on their way, the records, the workers and the clients.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    time::{Duration, Instant},
};

use base::{JobId, ProviderId, RoomId};
use bytes::Bytes;
use fleet::{Placement, Record, Rules, ServerId, StreamId, room_homes::Epoch};

use crate::plan::{Plan, Stream};

/// A server's worker, as it is known to its fellows.
pub(crate) type Facts = Option<(ProviderId, u8)>;

/// The rules that the test may switch off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mutant {
    pub(crate) rules: Rules,
    pub(crate) compare_and_set: bool,
}

impl Default for Mutant {
    fn default() -> Self {
        Self { rules: Rules::default(), compare_and_set: true }
    }
}

/// Something that will happen.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// A message comes to a server.
    Lent {
        from: ServerId,
        to: ServerId,
        bytes: Bytes,
    },
    Frame {
        from: ServerId,
        to: ServerId,
        bytes: Bytes,
    },
    /// A record comes to a server that watches.
    Seen {
        node: usize,
        record: Record<Facts>,
    },
    RoomSeen {
        node: usize,
        room: RoomId,
        placement: Placement,
        revision: u64,
    },
    /// All records have been shown.
    Listed {
        node: usize,
    },
    /// The answer to a claim.
    Claimed {
        to: ServerId,
        room: RoomId,
        epoch: Epoch,
        revision: u64,
    },
    ClaimLost {
        to: ServerId,
        room: RoomId,
        found: Option<(Placement, u64)>,
    },
    /// A write comes to the records.
    Publish {
        node: usize,
        record: Record<Facts>,
    },
    Claim {
        node: usize,
        by: ServerId,
        room: RoomId,
        placement: Placement,
        expected: u64,
    },
    /// A server notices that the transport is gone, or back.
    Transport {
        node: usize,
        works: bool,
    },
    /// A worker begins with an answer, or has written it.
    Begins {
        at: ServerId,
        job: JobId,
        token: u64,
    },
    Ends {
        at: ServerId,
        job: JobId,
        token: u64,
    },
    /// A client has read.
    Read {
        at: ServerId,
        stream: StreamId,
        bytes: usize,
    },
    /// A server starts, or goes on.
    Start {
        node: usize,
    },
    Wake {
        node: usize,
    },
}

/// How a job ended for its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Answered,
    Ended(String),
    HungUp,
    HomeDied,
}

#[derive(Debug)]
pub(crate) struct ClientJob {
    pub(crate) home: ServerId,
    pub(crate) model: u8,
    pub(crate) bytes: u64,
    pub(crate) takes_ms: u64,
    pub(crate) outcome: Option<Outcome>,
}

/// Everything that no server owns.
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) now: Duration,
    pub(crate) base: Instant,
    pub(crate) mutant: Mutant,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    count: u64,
    pub(crate) stream: Stream,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) late_ms: u64,
    pub(crate) is_noisy: bool,
    /// The servers without transport, and pairs of servers of which the first is not heard by the second.
    pub(crate) cut: BTreeSet<usize>,
    pub(crate) deaf: BTreeSet<(usize, usize)>,
    /// The present start of each server; `None` while it does not run.
    pub(crate) ids: Vec<Option<ServerId>>,
    pub(crate) records: BTreeMap<ServerId, Record<Facts>>,
    pub(crate) rooms: BTreeMap<RoomId, (Placement, u64)>,
    pub(crate) revision: u64,
    /// The home of each claimed number of each room.
    pub(crate) claimed: BTreeMap<(RoomId, u64), ServerId>,
    /// When the last record of each watcher arrives: they keep their order.
    watched: BTreeMap<usize, Duration>,
    /// The jobs at each server's worker, each with a token, and the worker's slots.
    pub(crate) workers: Vec<(u32, BTreeMap<JobId, u64>)>,
    pub(crate) jobs: BTreeMap<JobId, ClientJob>,
    /// The streams whose request was given to a worker.
    pub(crate) served: BTreeSet<StreamId>,
    /// When something last went wrong with a server by a fault of the plan, and by what followed.
    trouble: BTreeMap<ServerId, Duration>,
    unease: BTreeMap<ServerId, Duration>,
    /// When a server last lost a fellow.
    pub(crate) lefts: BTreeMap<(ServerId, ServerId), Duration>,
    /// The streams that the homes of jobs still have.
    pub(crate) at_home: BTreeSet<StreamId>,
    pub(crate) fault: Option<String>,
    pub(crate) lines: Option<Vec<String>>,
    pub(crate) account: Account,
}

/// The events in runs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) jobs: u64,
    pub(crate) answered: u64,
    pub(crate) through_fellows: u64,
    pub(crate) refused: u64,
    pub(crate) resets: u64,
    pub(crate) resent: u64,
    pub(crate) recalls: u64,
    pub(crate) adopted: u64,
    pub(crate) yielded: u64,
    pub(crate) left: u64,
}

impl Account {
    pub(crate) fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.answered += other.answered;
        self.through_fellows += other.through_fellows;
        self.refused += other.refused;
        self.resets += other.resets;
        self.resent += other.resent;
        self.recalls += other.recalls;
        self.adopted += other.adopted;
        self.yielded += other.yielded;
        self.left += other.left;
    }
}

impl Net {
    pub(crate) fn new(plan: &Plan, mutant: Mutant, is_traced: bool) -> Self {
        Self {
            now: Duration::ZERO,
            base: Instant::now(),
            mutant,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            count: 0,
            stream: Stream::new(plan.seed, u64::MAX),
            lost: plan.lost,
            doubled: plan.doubled,
            late_ms: plan.late_ms,
            is_noisy: plan.is_noisy,
            cut: BTreeSet::new(),
            deaf: BTreeSet::new(),
            ids: vec![None; plan.workers.len()],
            records: BTreeMap::new(),
            rooms: BTreeMap::new(),
            revision: 0,
            claimed: BTreeMap::new(),
            watched: BTreeMap::new(),
            workers: plan.workers.iter().map(|(slots, _)| (*slots, BTreeMap::new())).collect(),
            jobs: BTreeMap::new(),
            served: BTreeSet::new(),
            trouble: BTreeMap::new(),
            unease: BTreeMap::new(),
            lefts: BTreeMap::new(),
            at_home: BTreeSet::new(),
            fault: None,
            lines: is_traced.then(Vec::new),
            account: Account::default(),
        }
    }

    /// Adds a line to the trace, which is only made where it is wanted.
    pub(crate) fn say(&mut self, line: impl FnOnce() -> String) {
        let now = self.now.as_secs_f64();
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>10.3} {}", line()));
        }
    }

    /// Notes that a rule was broken.
    pub(crate) fn fail(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }

    pub(crate) fn plan(&mut self, after: Duration, event: Event) {
        self.plan_at(self.now + after, event);
    }

    pub(crate) fn plan_at(&mut self, at: Duration, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((at, self.count)));
        self.events.insert(self.count, event);
    }

    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let Reverse((_, number)) = self.queue.pop()?;
        self.events.remove(&number)
    }

    pub(crate) fn node_of(&self, id: ServerId) -> Option<usize> {
        self.ids.iter().position(|other| *other == Some(id))
    }

    pub(crate) fn token(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Sends a message to a server, which may be lost, doubled or late.
    pub(crate) fn send(&mut self, from: usize, to: ServerId, event: Event) {
        let Some(node) = self.node_of(to) else { return };
        let is_cut = self.cut.contains(&from) || self.cut.contains(&node);
        let before = (self.lost, self.late_ms);
        if self.is_noisy {
            let is_word = matches!(event, Event::Lent { .. });
            (self.lost, self.late_ms) = if is_word { (65, 5) } else { (0, 450) };
        }
        if !is_cut && !self.deaf.contains(&(from, node)) {
            self.carry(event);
        }
        (self.lost, self.late_ms) = before;
    }

    fn carry(&mut self, event: Event) {
        if self.stream.below(100) < self.lost {
            return;
        }
        if self.stream.below(100) < self.doubled {
            let delay = self.delay();
            self.plan(delay, event.clone());
        }
        let delay = self.delay();
        self.plan(delay, event);
    }

    /// Sends a write to the records, or an answer from them: late or lost with the transport only.
    pub(crate) fn write(&mut self, node: usize, event: Event) {
        if !self.cut.contains(&node) {
            let delay = Duration::from_micros(300 + self.stream.below(20_000));
            self.plan(delay, event);
        }
    }

    /// Shows a record to a server, after those before it.
    pub(crate) fn show(&mut self, node: usize, event: Event) {
        if self.cut.contains(&node) || self.ids[node].is_none() {
            return;
        }
        let at = self.now + Duration::from_micros(300 + self.stream.below(20_000));
        let last = self.watched.entry(node).or_default();
        *last = at.max(*last);
        let at = *last;
        self.plan_at(at, event);
    }

    /// Shows all records to a server that begins to watch.
    pub(crate) fn show_all(&mut self, node: usize) {
        for record in self.records.values().cloned().collect::<Vec<_>>() {
            self.show(node, Event::Seen { node, record });
        }
        for (room, (placement, revision)) in self.rooms.clone() {
            self.show(node, Event::RoomSeen { node, room, placement, revision });
        }
        self.show(node, Event::Listed { node });
    }

    /// A job has its outcome, once.
    pub(crate) fn conclude(&mut self, job: JobId, outcome: Outcome) {
        self.say(|| format!("{job} is over: {outcome:?}"));
        let Some(it) = self.jobs.get_mut(&job) else { return };
        self.account.answered += u64::from(outcome == Outcome::Answered);
        if let Some(before) = it.outcome.replace(outcome) {
            self.fail(format!("{job} ended twice, first as {before:?}"));
        }
    }

    pub(crate) fn trouble(&mut self, node: usize) {
        if let Some(id) = self.ids[node] {
            self.trouble.insert(id, self.now);
        }
    }

    pub(crate) fn unease(&mut self, id: ServerId) {
        self.unease.insert(id, self.now);
    }

    /// Whether the plan did nothing to a server for a while.
    pub(crate) fn is_calm(&self, id: ServerId) -> bool {
        self.trouble.get(&id).is_none_or(|at| *at + CALM < self.now)
    }

    /// Whether nothing was wrong with a server for a while, and messages come.
    pub(crate) fn is_easy(&self, id: ServerId) -> bool {
        let calm = self.unease.get(&id).is_none_or(|at| *at + CALM < self.now);
        calm && self.is_calm(id) && self.lost < 20 && !self.is_noisy
    }

    /// Whether a server had a fellow all the time, lately.
    pub(crate) fn had(&self, server: ServerId, fellow: ServerId) -> bool {
        self.lefts.get(&(server, fellow)).is_none_or(|at| *at + CALM < self.now)
    }

    fn delay(&mut self) -> Duration {
        Duration::from_micros(100 + self.stream.below(self.late_ms * 1_000))
    }
}

/// After this time without trouble, promises must hold.
const CALM: Duration = Duration::from_secs(6);
