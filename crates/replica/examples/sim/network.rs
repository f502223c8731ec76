//! Links, and messages on their way.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

use replica::{LinkId, Message};

use crate::plan::{Plan, Stream};

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// A message arrives.
    Arrive { link: LinkId, to: usize, message: Message },
    /// A member's transactions up to this token are stored, if it still runs.
    Stored { member: usize, run: u64, token: u64 },
    /// A member that was killed starts.
    Start { member: usize },
    /// A member dials another.
    Dial { edge: (usize, usize) },
    /// A copy of a member stops.
    Stop { member: usize },
}

/// A link between two members, and which of its directions lose everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) ends: [usize; 2],
    pub(crate) cut: [bool; 2],
    /// When the last message of each direction arrives: without faults messages keep their order.
    last: [Duration; 2],
}

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    count: u64,
    pub(crate) wires: BTreeMap<LinkId, Wire>,
    links: u64,
    pub(crate) stream: Stream,
    lost: u64,
    doubled: u64,
    late_ms: u64,
    pub(crate) messages: u64,
}

impl Network {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            count: 0,
            wires: BTreeMap::new(),
            links: 0,
            stream: Stream::new(plan.seed, u64::MAX),
            lost: plan.lost,
            doubled: plan.doubled,
            late_ms: plan.late_ms,
            messages: 0,
        }
    }

    pub(crate) fn plan(&mut self, after: Duration, event: Event) {
        self.plan_at(self.now + after, event);
    }

    fn plan_at(&mut self, at: Duration, event: Event) {
        self.count += 1;
        self.queue.push(Reverse((at, self.count)));
        self.events.insert(self.count, event);
    }

    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.queue.peek().map(|Reverse((at, _))| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        let Reverse((at, number)) = self.queue.pop()?;
        self.now = self.now.max(at);
        self.events.remove(&number)
    }

    pub(crate) fn open(&mut self, ends: [usize; 2]) -> LinkId {
        self.links += 1;
        let link = LinkId(self.links);
        self.wires.insert(link, Wire { ends, cut: [false; 2], last: [Duration::ZERO; 2] });
        link
    }

    /// The link between two members.
    pub(crate) fn between(&self, one: usize, other: usize) -> Option<LinkId> {
        let is_it = |wire: &Wire| wire.ends == [one, other] || wire.ends == [other, one];
        self.wires.iter().find(|(_, wire)| is_it(wire)).map(|(link, _)| *link)
    }

    /// Sends a message, which may be lost, doubled or late.
    pub(crate) fn send(&mut self, from: usize, link: LinkId, message: Message) {
        let Some(wire) = self.wires.get(&link) else { return };
        let direction = usize::from(wire.ends[1] == from);
        self.messages += 1;
        if wire.cut[direction] || self.stream.below(100) < self.lost {
            return;
        }
        if self.stream.below(100) < self.doubled {
            self.deliver(link, direction, message.clone());
        }
        self.deliver(link, direction, message);
    }

    fn deliver(&mut self, link: LinkId, direction: usize, message: Message) {
        let delay = Duration::from_micros(500 + self.stream.below(self.late_ms * 1_000));
        let keeps_order = self.late_ms <= 30;
        let Some(wire) = self.wires.get_mut(&link) else { return };
        let mut at = self.now + delay;
        if keeps_order {
            at = at.max(wire.last[direction]);
            wire.last[direction] = at;
        }
        let to = wire.ends[1 - direction];
        self.plan_at(at, Event::Arrive { link, to, message });
    }

    /// From now on messages are lost, doubled and late as planned.
    pub(crate) fn be_bad(&mut self, plan: &Plan) {
        (self.lost, self.doubled, self.late_ms) = (plan.lost, plan.doubled, plan.late_ms);
    }

    /// From now on no message is lost, doubled or late.
    pub(crate) fn be_kind(&mut self) {
        (self.lost, self.doubled, self.late_ms) = (0, 0, 30);
        self.heal();
    }

    pub(crate) fn heal(&mut self) {
        self.wires.values_mut().for_each(|wire| wire.cut = [false; 2]);
    }
}
