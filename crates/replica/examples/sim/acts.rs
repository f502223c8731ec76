//! The steps of a plan, carried out.

use std::{sync::Arc, time::Duration};

use replica::{Change, Input, Key, Kind, Refused, Stamp, Version};

use crate::{
    disk::Disk,
    network::Event,
    plan::{Act, Step, Stream},
    world::{Node, Running, World},
};

/// Time and again a month passes, but never three: the tombstones of plain peers' objects stay 90
/// days.
const MOST_MONTHS: u64 = 2;
const MONTH: Duration = Duration::from_secs(31 * 24 * 3600);

impl World<'_> {
    pub(crate) fn act(&mut self, step: &Step) {
        let mut stream = step.stream.clone();
        let member = stream.index(self.nodes.len());
        self.trace.say(self.network.now, || format!("── n{member} {:?}", step.act));
        if stream.one_in(4) {
            self.nodes[member].disk.copy(&mut stream);
        }
        match step.act {
            Act::Project => self.project(member, &mut stream),
            Act::DeleteProject => self.delete_one(member, Kind::PROJECT, &mut stream),
            Act::Session => self.session(member, &mut stream),
            Act::EndSession => self.end_session(member, &mut stream),
            Act::Forget => self.delete_one(member, Kind::SESSION, &mut stream),
            Act::Move => self.move_session(member, &mut stream),
            Act::Plain => self.plain(&mut stream),
            Act::Cut => self.cut(&mut stream),
            Act::Heal => self.network.heal(),
            Act::Break => self.break_link(&mut stream),
            Act::Crash => self.crash(member, &mut stream, false),
            Act::Restore => self.crash(member, &mut stream, true),
            Act::Clock => self.jump(member, &mut stream),
            Act::Clone => self.clone_member(member, &mut stream),
            Act::Month => self.month(&mut stream),
            Act::Collect => self.collect(member),
            Act::Disk => self.nodes[member].disk.is_slow ^= true,
        }
    }

    fn name(&mut self, of: &str) -> Arc<str> {
        self.names += 1;
        format!("{of}{}", self.names).into()
    }

    /// One of the shown objects of a kind.
    fn shown(&self, member: usize, kind: Kind, stream: &mut Stream) -> Option<Key> {
        let keys: Vec<&Key> = self.replica(member)?.entries_of(kind).map(|(key, _)| key).collect();
        (!keys.is_empty()).then(|| keys[stream.index(keys.len())].clone())
    }

    fn project(&mut self, member: usize, stream: &mut Stream) {
        let known = self.shown(member, Kind::PROJECT, stream).filter(|_| !stream.one_in(4));
        let key = known.unwrap_or_else(|| Key::new(Kind::PROJECT, self.name("p")));
        let (owner, value) = (self.nodes[member].id.clone(), self.name("v"));
        self.input(member, Input::Write { key, owner, value, change: Change::Update });
    }

    fn delete_one(&mut self, member: usize, kind: Kind, stream: &mut Stream) {
        let Some(key) = self.shown(member, kind, stream) else { return };
        self.nodes[member].running.remove(&key);
        self.input(member, Input::Delete { key });
    }

    fn own_session(&self, member: usize, stream: &mut Stream) -> Option<Key> {
        let keys: Vec<&Key> = self.nodes[member].running.keys().collect();
        (!keys.is_empty()).then(|| keys[stream.index(keys.len())].clone())
    }

    fn session(&mut self, member: usize, stream: &mut Stream) {
        let known = self.own_session(member, stream).filter(|_| !stream.one_in(4));
        let key = known.unwrap_or_else(|| Key::new(Kind::SESSION, self.name("s")));
        let (owner, value) = (self.nodes[member].id.clone(), self.name("v"));
        let write =
            Input::Write { key: key.clone(), owner, value: value.clone(), change: Change::Update };
        if self.replica(member).is_none() {
            return;
        }
        match self.input(member, write) {
            None => {
                self.nodes[member].running.insert(key, Running { value });
            }
            Some(_) => {
                self.nodes[member].running.remove(&key);
            }
        }
    }

    fn end_session(&mut self, member: usize, stream: &mut Stream) {
        let Some(key) = self.own_session(member, stream) else { return };
        if self.replica(member).is_some() {
            self.nodes[member].running.remove(&key);
            self.input(member, Input::Delete { key });
        }
    }

    fn move_session(&mut self, member: usize, stream: &mut Stream) {
        let to = stream.index(self.plan.members);
        let Some(key) = self.own_session(member, stream) else { return };
        let is_up = |member: usize| self.replica(member).is_some();
        // A member refuses to take over what it runs: this owner's disk is an old one.
        let runs_there = self.nodes[to].running.contains_key(&key);
        if !is_up(member) || !is_up(to) || runs_there {
            return;
        }
        let Some(running) = self.nodes[member].running.get(&key).cloned() else { return };
        self.moved.insert(key.clone());
        self.nodes[to].expected.insert(key.clone());
        self.input(to, Input::Expect { key: key.clone() });
        let (owner, value) = (self.nodes[to].id.clone(), running.value);
        let write = Input::Write { key: key.clone(), owner, value, change: Change::Move };
        if self.input(member, write).is_none() {
            self.nodes[member].running.remove(&key);
        }
    }

    /// A plain peer, which is linked to the first member and sometimes to the second, says one of a
    /// few things, new or old.
    fn plain(&mut self, stream: &mut Stream) {
        let is_session = stream.one_in(2);
        let kind = if is_session { Kind::SESSION } else { Kind::PROJECT };
        let key = Key::new(kind, format!("plain{}", stream.below(2)));
        let number = 1 + stream.below(12);
        let time = self.wall_of_the_cluster().as_millis() / 60_000;
        let minute = u64::try_from(time).unwrap_or_default();
        let version = if is_session {
            Version::Generation(number)
        } else {
            Version::Stamp(Stamp { wall_ms: minute * 60_000, counter: 0, node: "plain".into() })
        };
        let value: Arc<str> = format!("{key:?} {version:?}").into();
        let removes = stream.one_in(5);
        let adopters = 1 + usize::from(stream.one_in(2));
        for member in 0..adopters {
            let (key, owner) = (key.clone(), "plain".into());
            if !removes {
                let (version, value) = (version.clone(), value.clone());
                let refused = self.input(member, Input::Adopt { key, owner, version, value });
                self.account.adopted += u64::from(refused.is_none());
            } else if self.replica(member).is_some_and(|replica| replica.get(&key).is_some()) {
                let refused = self.input(member, Input::Delete { key });
                self.account.refused += u64::from(refused == Some(Refused::Unknown));
            }
        }
    }

    fn wall_of_the_cluster(&self) -> Duration {
        (0..self.plan.members).map(|member| self.wall(member)).min().unwrap_or_default()
    }

    fn cut(&mut self, stream: &mut Stream) {
        let links: Vec<_> = self.network.wires.keys().copied().collect();
        if links.is_empty() {
            return;
        }
        let link = links[stream.index(links.len())];
        let cut = [[true, true], [true, false], [false, true]][stream.index(3)];
        if let Some(wire) = self.network.wires.get_mut(&link) {
            wire.cut = cut;
        }
    }

    fn break_link(&mut self, stream: &mut Stream) {
        let wires: Vec<_> =
            self.network.wires.iter().map(|(link, wire)| (*link, wire.ends)).collect();
        if wires.is_empty() {
            return;
        }
        let (link, [one, other]) = wires[stream.index(wires.len())];
        self.close(link);
        self.plan_dial((one, other));
    }

    fn crash(&mut self, member: usize, stream: &mut Stream, old_disk: bool) {
        if self.replica(member).is_none() || self.nodes[member].is_clone {
            return;
        }
        self.account.crashes += u64::from(!old_disk);
        self.account.restores += u64::from(old_disk);
        if old_disk {
            // Generations survive an old disk, or a clock that went back, and not both. A session's
            // may be from the clock of an owner before this one.
            let most = self.nodes.iter().map(|node| node.most_ahead_ms).max();
            self.nodes[member].ahead_ms = most.unwrap_or_default();
        }
        self.kill(member, stream, old_disk);
        let after = Duration::from_millis(20 + stream.below(5_000));
        self.network.plan(after, Event::Start { member });
    }

    fn jump(&mut self, member: usize, stream: &mut Stream) {
        const HOUR_MS: i64 = 3_600_000;
        let ahead_ms = [HOUR_MS, HOUR_MS, -HOUR_MS, 90_000, 0][stream.index(5)];
        let node = &mut self.nodes[member];
        node.ahead_ms = ahead_ms;
        node.most_ahead_ms = node.most_ahead_ms.max(ahead_ms);
    }

    /// The disk of a member runs on another machine, with links to members that the first machine
    /// has none to.
    fn clone_member(&mut self, member: usize, stream: &mut Stream) {
        let is_one = self.nodes.iter().any(|node| node.is_clone);
        if is_one || self.replica(member).is_none() {
            return;
        }
        self.account.clones += 1;
        let original = &self.nodes[member];
        let disk: Disk = original.disk.cloned();
        let mut node = Node::new(original.id.clone(), disk);
        node.is_clone = true;
        self.nodes.push(node);
        let clone = self.nodes.len() - 1;
        self.start(clone);
        for peer in 0..self.plan.members {
            if peer != member && stream.one_in(2) {
                self.dial((peer, clone));
            }
        }
        let after = Duration::from_millis(500 + stream.below(6_000));
        self.network.plan(after, Event::Stop { member: clone });
    }

    /// A month passes. Members that are linked meanwhile would send a million digests, so nobody is,
    /// and afterwards one member comes back later than the others.
    fn month(&mut self, stream: &mut Stream) {
        // A copied machine may begin a life of a session that nobody heard of. If everybody is silent
        // for a month then, its tombstone may go too early; the backstop makes that equal.
        if self.months == MOST_MONTHS || self.account.clones > 0 {
            return;
        }
        self.months += 1;
        self.stop_clones();
        self.close_all();
        self.sleep(MONTH);
        let late = stream.index(self.plan.members);
        for edge in self.plan.edges.clone() {
            let is_late = edge.0 == late || edge.1 == late;
            let after = if is_late { 8_000 } else { 100 };
            self.network.plan(Duration::from_millis(after), Event::Dial { edge });
        }
    }
}
