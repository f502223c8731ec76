//! Members with disks, joined by links that lose nothing.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    Change, Config, Entry, Incarnation, Input, Key, Kind, LinkId, Message, NodeId, Notice, Output,
    Refused, Replica, Stored,
};

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) struct Member {
    pub(super) replica: Replica,
    pub(super) disk: Stored,
    pub(super) notices: Vec<Notice>,
    /// How far its wall clock is ahead of the others'.
    pub(super) ahead: Duration,
    pub(super) keeps: usize,
    links: BTreeMap<LinkId, usize>,
    /// Messages that left: the receiver, and their bytes.
    pub(super) sent: Vec<(usize, Message)>,
}

pub(super) struct Cluster {
    pub(super) members: Vec<Member>,
    pub(super) now: Instant,
    start: Instant,
    links: u64,
    under_way: VecDeque<(usize, LinkId, Message)>,
    starts: u64,
}

pub(super) fn project(id: &str) -> Key {
    Key::new(Kind::PROJECT, id)
}

pub(super) fn session(id: &str) -> Key {
    Key::new(Kind::SESSION, id)
}

pub(super) fn node(member: usize) -> NodeId {
    NodeId::from(format!("node-{member}").as_str())
}

impl Cluster {
    pub(super) fn new(count: usize) -> Self {
        Self::with(count, Config::new)
    }

    pub(super) fn with(count: usize, config: impl Fn(NodeId) -> Config) -> Self {
        let now = Instant::now();
        let mut cluster = Self {
            members: Vec::new(),
            now,
            start: now,
            links: 0,
            under_way: VecDeque::new(),
            starts: 0,
        };
        for member in 0..count {
            let config = config(node(member));
            let disk = Stored::default();
            let member = cluster.member(config, disk, Duration::ZERO);
            cluster.members.push(member);
        }
        cluster
    }

    fn member(&mut self, config: Config, disk: Stored, ahead: Duration) -> Member {
        self.starts += 1;
        let incarnation = Incarnation(self.starts << 32);
        let wall = self.wall() + ahead;
        let replica = Replica::new(config, self.starts, incarnation, disk.clone(), self.now, wall);
        let (notices, links, sent) = (Vec::new(), BTreeMap::new(), Vec::new());
        Member { replica, disk, notices, ahead, keeps: 0, links, sent }
    }

    /// Starts a member again from a disk: all its links are closed.
    pub(super) fn restart(&mut self, member: usize, disk: Stored) {
        self.disconnect(member);
        let (config, ahead) = {
            let old = &self.members[member];
            (old.replica.config.clone(), old.ahead)
        };
        self.members[member] = self.member(config, disk, ahead);
    }

    pub(super) fn wall(&self) -> Duration {
        1_000_000 * HOUR + self.now.saturating_duration_since(self.start)
    }

    pub(super) fn connect(&mut self, one: usize, other: usize) {
        self.links += 1;
        let link = LinkId(self.links);
        for (member, peer) in [(one, other), (other, one)] {
            let incarnation = self.members[peer].replica.incarnation();
            self.members[member].links.insert(link, peer);
            self.input(member, Input::LinkUp { link, node: node(peer), incarnation }).unwrap();
        }
        self.settle();
    }

    pub(super) fn disconnect(&mut self, member: usize) {
        for (link, peer) in std::mem::take(&mut self.members[member].links) {
            self.under_way.retain(|(_, other, _)| *other != link);
            self.members[peer].links.remove(&link);
            for end in [member, peer] {
                self.input(end, Input::LinkDown { link }).unwrap();
            }
        }
        self.settle();
    }

    /// Gives one input, and stores what is to be kept.
    pub(super) fn input(&mut self, member: usize, input: Input) -> Result<(), Refused> {
        let wall = self.wall() + self.members[member].ahead;
        let result = self.members[member].replica.handle(self.now, wall, input);
        self.drain(member);
        result
    }

    fn drain(&mut self, member: usize) {
        let wall = self.wall() + self.members[member].ahead;
        let Self { members, under_way, now, .. } = self;
        let state = &mut members[member];
        while let Some(output) = state.replica.poll_output() {
            match output {
                Output::Keep { token, facts } => {
                    state.keeps += 1;
                    facts.iter().for_each(|fact| state.disk.apply(fact));
                    state.replica.handle(*now, wall, Input::Kept { token }).unwrap();
                }
                Output::Send { link, message } => {
                    if let Some(peer) = state.links.get(&link) {
                        state.sent.push((*peer, message.clone()));
                        under_way.push_back((*peer, link, message));
                    }
                }
                Output::Notice(notice) => state.notices.push(notice),
                Output::Changed { .. } => {}
            }
        }
    }

    /// Delivers all messages, as bytes.
    pub(super) fn settle(&mut self) {
        while let Some((member, link, message)) = self.under_way.pop_front() {
            let message = Message::decode(&message.encode()).unwrap();
            self.input(member, Input::Message { link, message }).unwrap();
        }
    }

    /// Lets time pass, with every deadline on the way.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            for member in 0..self.members.len() {
                self.tick(member);
            }
            self.settle();
        }
        self.now = end;
    }

    fn tick(&mut self, member: usize) {
        let wall = self.wall() + self.members[member].ahead;
        let replica = &mut self.members[member].replica;
        if replica.poll_timeout().is_some_and(|(at, _)| at <= self.now) {
            replica.handle_timeout(self.now, wall);
            self.drain(member);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = self.members.iter().filter_map(|member| member.replica.poll_timeout());
        deadlines.map(|(at, _)| at).min()
    }

    pub(super) fn write(&mut self, member: usize, key: &Key, value: &str) -> Result<(), Refused> {
        self.write_as(member, key, value, Change::Update)
    }

    pub(super) fn write_as(
        &mut self,
        member: usize,
        key: &Key,
        value: &str,
        change: Change,
    ) -> Result<(), Refused> {
        let (key, owner, value) = (key.clone(), node(member), value.into());
        let result = self.input(member, Input::Write { key, owner, value, change });
        self.settle();
        result
    }

    pub(super) fn delete(&mut self, member: usize, key: &Key) -> Result<(), Refused> {
        let result = self.input(member, Input::Delete { key: key.clone() });
        self.settle();
        result
    }

    /// The shown value of an object.
    pub(super) fn value(&self, member: usize, key: &Key) -> Option<&str> {
        self.members[member].replica.get(key).map(|entry| &*entry.value)
    }

    /// The values of an object at all members.
    pub(super) fn values(&self, key: &Key) -> Vec<Option<&str>> {
        (0..self.members.len()).map(|member| self.value(member, key)).collect()
    }

    pub(super) fn entry(&self, member: usize, key: &Key) -> Arc<Entry> {
        self.members[member].replica.get(key).unwrap().clone()
    }

    /// The bytes of the messages since the last call, by all members.
    pub(super) fn traffic(&mut self) -> Vec<Message> {
        let sent = self.members.iter_mut().flat_map(|member| std::mem::take(&mut member.sent));
        sent.map(|(_, message)| message).collect()
    }

    /// All members have noted the same writes and have the same objects.
    pub(super) fn assert_equal(&self) {
        let first = &self.members[0].replica;
        for member in &self.members {
            assert_eq!(member.replica.noted(), first.noted());
            assert_eq!(member.replica.print(), first.print());
        }
    }
}
