//! A run: members with disks, clocks and links, and what they do.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use replica::{
    Change, Config, Dot, Incarnation, Input, Key, Kind, LinkId, Message, NodeId, Notice, Output,
    Refused, Replica, Rules,
};

use crate::{
    disk::Disk,
    model::Model,
    network::{Event, Network},
    plan::{Plan, Stream},
    trace::Trace,
};

/// The wall clock of a run's beginning, since 1970.
const BEGINNING: Duration = Duration::from_secs(1_750_000_000);

/// The changes to the real rules, to see that they are noticed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mutant {
    pub(crate) rules: Rules,
    /// A member keeps one incarnation for ever.
    pub(crate) one_incarnation: bool,
}

/// The events in a run without a fault.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Account {
    pub(crate) messages: u64,
    pub(crate) events: u64,
    pub(crate) writes: u64,
    pub(crate) checks: u64,
    pub(crate) crashes: u64,
    pub(crate) restores: u64,
    pub(crate) clones: u64,
    pub(crate) held: u64,
    pub(crate) adopted: u64,
    pub(crate) refused: u64,
}

impl Account {
    pub(crate) fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.events += other.events;
        self.writes += other.writes;
        self.checks += other.checks;
        self.crashes += other.crashes;
        self.restores += other.restores;
        self.clones += other.clones;
        self.held += other.held;
        self.adopted += other.adopted;
        self.refused += other.refused;
    }
}

/// A session as its owner runs it.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) value: Arc<str>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) replica: Option<Replica>,
    pub(crate) disk: Disk,
    /// How far its wall clock is ahead, in milliseconds.
    pub(crate) ahead_ms: i64,
    pub(crate) most_ahead_ms: i64,
    pub(crate) is_clone: bool,
    pub(crate) running: BTreeMap<Key, Running>,
    pub(crate) expected: BTreeSet<Key>,
    run: u64,
    /// Own writes that are not stored yet.
    unstored: Vec<(u64, Dot)>,
    /// Projects that it showed as deleted.
    gone: BTreeSet<Key>,
    deadline: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) network: Network,
    pub(crate) nodes: Vec<Node>,
    pub(crate) model: Model,
    pub(crate) trace: Trace,
    pub(crate) account: Account,
    /// Sessions that moved once: their first owner may no longer run them.
    pub(crate) moved: BTreeSet<Key>,
    pub(crate) names: u64,
    pub(crate) months: u64,
    mutant: Mutant,
    starts: u64,
    /// The first broken rule. Where an output shows it, the run cannot end at once.
    pub(crate) broken: Option<String>,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, mutant: Mutant, trace: Trace) -> Self {
        let mut world = Self {
            plan,
            network: Network::new(plan),
            nodes: Vec::new(),
            model: Model::default(),
            trace,
            account: Account::default(),
            moved: BTreeSet::new(),
            names: 0,
            months: 0,
            mutant,
            starts: 0,
            broken: None,
        };
        for member in 0..plan.members {
            world
                .nodes
                .push(Node::new(NodeId::from(format!("n{member}").as_str()), Disk::default()));
            world.start(member);
        }
        world.dial_all();
        world
    }

    // ── time ──

    pub(crate) fn instant(&self) -> Instant {
        static START: OnceLock<Instant> = OnceLock::new();
        *START.get_or_init(Instant::now) + self.network.now
    }

    pub(crate) fn wall(&self, member: usize) -> Duration {
        let time = BEGINNING + self.network.now;
        let ahead = self.nodes[member].ahead_ms;
        let by = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 { time.saturating_sub(by) } else { time + by }
    }

    /// Lets time pass, with everything that happens meanwhile.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.network.now + time;
        while self.broken.is_none() {
            let timer = self.nodes.iter().enumerate().filter_map(|(m, n)| Some((n.deadline?, m)));
            let timer = timer.min();
            match (timer, self.network.next_at()) {
                (Some((at, member)), event)
                    if at <= end && event.is_none_or(|event| at <= event) =>
                {
                    self.network.now = self.network.now.max(at);
                    self.tick(member);
                }
                (_, Some(at)) if at <= end => {
                    if let Some(event) = self.network.pop() {
                        self.happen(event);
                    }
                }
                _ => break,
            }
        }
        self.network.now = end;
    }

    /// Time passes while all machines sleep.
    pub(crate) fn sleep(&mut self, time: Duration) {
        self.network.now += time;
        (0..self.nodes.len()).for_each(|member| self.tick(member));
    }

    fn happen(&mut self, event: Event) {
        self.account.events += 1;
        match event {
            Event::Arrive { link, to, message } => self.arrive(link, to, message),
            Event::Stored { member, run, token } => {
                if self.nodes[member].run == run {
                    self.nodes[member].disk.store(token);
                    self.nodes[member].unstored.retain(|(waiting, _)| *waiting > token);
                    self.input(member, Input::Kept { token });
                }
            }
            Event::Start { member } => self.start(member),
            Event::Dial { edge } => self.dial(edge),
            Event::Stop { member } => self.stop(member),
        }
    }

    fn arrive(&mut self, link: LinkId, to: usize, message: Message) {
        if !self.network.wires.contains_key(&link) {
            return;
        }
        let message = if self.plan.as_bytes {
            match Message::decode(&message.encode()) {
                Ok(message) => message,
                Err(error) => return self.fail(format!("{error}: {message:?}")),
            }
        } else {
            message
        };
        self.trace.say(self.network.now, || format!("n{to} gets {message:?}"));
        self.input(to, Input::Message { link, message });
    }

    // ── one member ──

    pub(crate) fn input(&mut self, member: usize, input: Input) -> Option<Refused> {
        let (now, wall) = (self.instant(), self.wall(member));
        let replica = self.nodes[member].replica.as_mut()?;
        let result = replica.handle(now, wall, input);
        self.drain(member);
        result.err()
    }

    pub(crate) fn tick(&mut self, member: usize) {
        let (now, wall) = (self.instant(), self.wall(member));
        if let Some(replica) = self.nodes[member].replica.as_mut() {
            replica.handle_timeout(now, wall);
            self.drain(member);
        }
    }

    pub(crate) fn collect(&mut self, member: usize) {
        if let Some(replica) = self.nodes[member].replica.as_mut() {
            replica.collect_now();
            self.drain(member);
        }
    }

    fn drain(&mut self, member: usize) {
        while let Some(output) = self.nodes[member].replica.as_mut().and_then(Replica::poll_output)
        {
            match output {
                Output::Keep { token, facts } => self.keep(member, token, facts),
                Output::Send { link, message } => self.send(member, link, message),
                Output::Changed { key, entry } => self.changed(member, &key, entry.as_ref()),
                Output::Notice(notice) => self.notice(member, &notice),
            }
        }
        let now = self.instant();
        let node = &mut self.nodes[member];
        let at = node.replica.as_ref().and_then(|replica| Some(replica.poll_timeout()?.0));
        node.deadline = at.map(|at| self.network.now + at.saturating_duration_since(now));
    }

    fn keep(&mut self, member: usize, token: u64, facts: Vec<replica::Fact>) {
        let node = &mut self.nodes[member];
        let own = node.replica.as_ref().map(Replica::incarnation);
        for fact in &facts {
            let replica::Fact::Entry { key, entry: Some((entry, _)), .. } = fact else { continue };
            if Some(entry.dot.incarnation) == own {
                node.unstored.push((token, entry.dot));
                self.account.writes += 1;
                if let Err(fault) = self.model.note(key, entry) {
                    self.broken.get_or_insert(fault);
                }
            }
        }
        let stream = &mut self.network.stream;
        let most = if node.disk.is_slow { 2_000_000 } else { 3_000 };
        let delay = Duration::from_micros(stream.below(most));
        node.disk.write(token, facts);
        let run = node.run;
        self.network.plan(delay, Event::Stored { member, run, token });
    }

    fn send(&mut self, member: usize, link: LinkId, message: Message) {
        if let Message::Delta { key, entry } = &message
            && let Err(fault) = self.model.note(key, entry)
        {
            self.fail(fault);
        }
        self.network.send(member, link, message);
    }

    fn changed(&mut self, member: usize, key: &Key, entry: Option<&Arc<replica::Entry>>) {
        self.trace.say(self.network.now, || format!("n{member} shows {key:?}: {entry:?}"));
        let node = &mut self.nodes[member];
        if let Some(entry) = entry
            && entry.owner == node.id
            && node.expected.remove(key)
        {
            node.running.insert(key.clone(), Running { value: entry.value.clone() });
        }
        if key.kind != Kind::PROJECT {
            return;
        }
        if entry.is_none() {
            node.gone.insert(key.clone());
        } else if node.gone.contains(key) {
            self.fail(format!("n{member} shows {key:?} again, which was deleted"));
        }
    }

    fn notice(&mut self, member: usize, notice: &Notice) {
        self.trace.say(self.network.now, || format!("n{member} notices: {notice}"));
        self.account.held += u64::from(matches!(notice, Notice::Held { .. }));
        if notice.is_error() {
            self.fail(format!("n{member}: {notice}"));
        }
    }

    pub(crate) fn fail(&mut self, fault: String) {
        self.trace.say(self.network.now, || format!("BROKEN: {fault}"));
        self.broken.get_or_insert(fault);
    }

    // ── starts and ends ──

    pub(crate) fn start(&mut self, member: usize) {
        if self.nodes[member].replica.is_some()
            || self.nodes[member].is_clone && self.nodes[member].run > 0
        {
            return;
        }
        self.starts += 1;
        let (now, wall) = (self.instant(), self.wall(member));
        let mut stream = Stream::new(self.plan.seed, (1 << 40) + self.starts);
        let node = &mut self.nodes[member];
        let incarnation = if self.mutant.one_incarnation {
            Incarnation(node.id.as_str().bytes().map(u64::from).sum())
        } else {
            Incarnation(stream.bits())
        };
        let mut config = Config::new(node.id.clone());
        config.limits.batch_entries = self.plan.batch_entries;
        config.rules = self.mutant.rules;
        let disk = node.disk.stored.clone();
        node.run += 1;
        let replica = Replica::new(config, stream.bits(), incarnation, disk, now, wall);
        let own = replica.entries_of(Kind::SESSION).filter(|(_, entry)| entry.owner == node.id);
        node.running =
            own.map(|(key, entry)| (key.clone(), Running { value: entry.value.clone() })).collect();
        node.replica = Some(replica);
        self.trace.say(self.network.now, || format!("n{member} starts as {incarnation}"));
        self.after_start(member);
    }

    fn after_start(&mut self, member: usize) {
        for key in self.nodes[member].expected.clone() {
            self.input(member, Input::Expect { key });
        }
        let (id, key) =
            (self.nodes[member].id.clone(), Key::new(Kind::MEMBER, self.nodes[member].id.as_str()));
        let is_written = self.replica(member).is_some_and(|replica| replica.get(&key).is_some());
        if !is_written {
            let value = "{}".into();
            self.input(member, Input::Write { key, owner: id, value, change: Change::Update });
        }
        for edge in self.plan.edges.clone() {
            if edge.0 == member || edge.1 == member {
                self.plan_dial(edge);
            }
        }
    }

    pub(crate) fn replica(&self, member: usize) -> Option<&Replica> {
        self.nodes[member].replica.as_ref()
    }

    /// Kills a member: its links close, and the newest writes are lost.
    pub(crate) fn kill(&mut self, member: usize, stream: &mut Stream, old_disk: bool) {
        self.close_links_of(member);
        let node = &mut self.nodes[member];
        node.replica = None;
        node.deadline = None;
        node.run += 1;
        node.gone.clear();
        let stored = node.disk.crash(stream);
        let lost = node.unstored.drain(..).filter(|(token, _)| *token > stored);
        let lost: BTreeSet<Dot> = lost.map(|(_, dot)| dot).collect();
        let is_old = old_disk && node.disk.restore(stream);
        self.model.lose(&lost);
        self.trace.say(self.network.now, || {
            format!("n{member} is killed, old disk {is_old}, lost {lost:?}")
        });
    }

    /// A copy of a member's machine stops for good.
    fn stop(&mut self, member: usize) {
        if self.nodes[member].replica.is_some() {
            let mut stream = self.network.stream.clone();
            self.kill(member, &mut stream, false);
        }
    }

    pub(crate) fn stop_clones(&mut self) {
        let clones: Vec<usize> =
            (0..self.nodes.len()).filter(|member| self.nodes[*member].is_clone).collect();
        clones.into_iter().for_each(|member| self.stop(member));
    }

    // ── links ──

    pub(crate) fn plan_dial(&mut self, edge: (usize, usize)) {
        let after = Duration::from_millis(50 + self.network.stream.below(400));
        self.network.plan(after, Event::Dial { edge });
    }

    pub(crate) fn dial_all(&mut self) {
        self.plan.edges.clone().into_iter().for_each(|edge| self.plan_dial(edge));
    }

    /// Opens a link, unless one of its ends has a link to a machine of the same id already. Then
    /// both machines of that id hear of each other.
    pub(crate) fn dial(&mut self, edge: (usize, usize)) {
        let (one, other) = edge;
        let is_up = |member: usize| self.nodes[member].replica.is_some();
        if !is_up(one) || !is_up(other) || self.network.between(one, other).is_some() {
            return;
        }
        if let Some(double) = self.double(one, other).or_else(|| self.double(other, one)) {
            for member in
                [double, if self.nodes[double].id == self.nodes[one].id { one } else { other }]
            {
                self.input(member, Input::Doubled);
            }
            // The refused one tries again later.
            self.network.plan(Duration::from_secs(1), Event::Dial { edge });
            return;
        }
        let link = self.network.open([one, other]);
        self.trace.say(self.network.now, || format!("n{one} and n{other} are linked: {link:?}"));
        for (member, peer) in [(one, other), (other, one)] {
            let node = self.nodes[peer].id.clone();
            let Some(incarnation) = self.replica(peer).map(Replica::incarnation) else { return };
            self.input(member, Input::LinkUp { link, node, incarnation });
        }
    }

    /// Another machine with the id of `other` that `one` is linked to.
    fn double(&self, one: usize, other: usize) -> Option<usize> {
        let id = &self.nodes[other].id;
        let ends = self.network.wires.values().map(|wire| wire.ends);
        let peers =
            ends.filter(|ends| ends.contains(&one)).map(|[a, b]| if a == one { b } else { a });
        peers.into_iter().find(|peer| *peer != other && self.nodes[*peer].id == *id)
    }

    pub(crate) fn close(&mut self, link: LinkId) {
        if let Some(wire) = self.network.wires.remove(&link) {
            for member in wire.ends {
                self.input(member, Input::LinkDown { link });
            }
        }
    }

    fn close_links_of(&mut self, member: usize) {
        let wires = self.network.wires.iter().filter(|(_, wire)| wire.ends.contains(&member));
        let links: Vec<(LinkId, [usize; 2])> =
            wires.map(|(link, wire)| (*link, wire.ends)).collect();
        for (link, _) in links {
            self.close(link);
        }
    }

    pub(crate) fn close_all(&mut self) {
        let links: Vec<LinkId> = self.network.wires.keys().copied().collect();
        links.into_iter().for_each(|link| self.close(link));
    }
}

impl Node {
    pub(crate) fn new(id: NodeId, disk: Disk) -> Self {
        Self {
            id,
            replica: None,
            disk,
            ahead_ms: 0,
            most_ahead_ms: 0,
            is_clone: false,
            running: BTreeMap::new(),
            expected: BTreeSet::new(),
            run: 0,
            unstored: Vec::new(),
            gone: BTreeSet::new(),
            deadline: None,
        }
    }
}
