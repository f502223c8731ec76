//! Relay sessions, each bound to its two ends.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};

use super::Connection;

/// How long a relay session may be idle before it may be ended to make room for another.
const IDLE: Duration = Duration::from_secs(60);

/// The two ends, in order.
type Ends = (Connection, Connection);

/// All relay sessions. Two pairs of nodes may use the same id without touching each other's
/// session.
#[derive(Default)]
pub(super) struct Sessions {
    /// By their ends and their id. Ids are in lower case, since some peers write them in upper
    /// case.
    open: HashMap<Ends, HashMap<Box<str>, Instant>>,
    /// The partners of each node, and the number of its sessions.
    by_node: HashMap<Connection, NodeSessions>,
    count: usize,
}

#[derive(Default)]
struct NodeSessions {
    count: usize,
    others: BTreeSet<Connection>,
}

fn ends(a: Connection, b: Connection) -> Ends {
    (a.min(b), a.max(b))
}

fn key(id: &str) -> Cow<'_, str> {
    if id.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(id.to_ascii_lowercase())
    } else {
        Cow::Borrowed(id)
    }
}

impl Sessions {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    pub(super) fn of(&self, node: Connection) -> usize {
        self.by_node.get(&node).map_or(0, |own| own.count)
    }

    /// How many sessions two nodes have with each other.
    pub(super) fn between(&self, a: Connection, b: Connection) -> usize {
        self.open.get(&ends(a, b)).map_or(0, HashMap::len)
    }

    /// Whether this session exists. Counts as a use of it.
    pub(super) fn used(&mut self, a: Connection, b: Connection, id: &str, now: Instant) -> bool {
        let session = self.open.get_mut(&ends(a, b)).and_then(|open| open.get_mut(&*key(id)));
        session.map(|used| *used = now).is_some()
    }

    pub(super) fn open(&mut self, a: Connection, b: Connection, id: &str, now: Instant) {
        let open = self.open.entry(ends(a, b)).or_default();
        if open.insert(key(id).into(), now).is_some() {
            return;
        }
        self.count += 1;
        for (one, other) in both(a, b) {
            let own = self.by_node.entry(one).or_default();
            own.count += 1;
            own.others.insert(other);
        }
    }

    /// Ends a session. Returns whether there was one.
    pub(super) fn close(&mut self, a: Connection, b: Connection, id: &str) -> bool {
        let Some(open) = self.open.get_mut(&ends(a, b)) else { return false };
        if open.remove(&*key(id)).is_none() {
            return false;
        }
        let last = open.is_empty();
        if last {
            self.open.remove(&ends(a, b));
        }
        self.count -= 1;
        for (one, other) in both(a, b) {
            self.forget(one, other, 1, last);
        }
        true
    }

    /// Ends all sessions of a node, and returns its partners.
    pub(super) fn leave(&mut self, node: Connection) -> BTreeSet<Connection> {
        let others = self.by_node.get(&node).map(|own| own.others.clone()).unwrap_or_default();
        for other in &others {
            let ended = self.open.remove(&ends(node, *other)).map_or(0, |open| open.len());
            self.count -= ended;
            for (one, other) in both(node, *other) {
                self.forget(one, other, ended, true);
            }
        }
        others
    }

    /// The other end and the id of the node's session that has been idle longest, if it has been
    /// idle for [`IDLE`].
    pub(super) fn idle(&self, node: Connection, now: Instant) -> Option<(Connection, Box<str>)> {
        let others = self.by_node.get(&node)?.others.iter();
        let open = others.filter_map(|other| Some((other, self.open.get(&ends(node, *other))?)));
        let all = open.flat_map(|(other, open)| open.iter().map(move |(id, at)| (at, other, id)));
        let (at, other, id) = all.min()?;
        is_idle(*at, now).then(|| (*other, id.clone()))
    }

    /// The same among the sessions of two nodes with each other; returns the id.
    pub(super) fn idle_between(
        &self,
        a: Connection,
        b: Connection,
        now: Instant,
    ) -> Option<Box<str>> {
        let all = self.open.get(&ends(a, b))?.iter().map(|(id, at)| (at, id));
        let (at, id) = all.min()?;
        is_idle(*at, now).then(|| id.clone())
    }

    fn forget(&mut self, one: Connection, other: Connection, ended: usize, last: bool) {
        let Some(own) = self.by_node.get_mut(&one) else { return };
        own.count -= ended;
        if last {
            own.others.remove(&other);
        }
        if own.count == 0 {
            self.by_node.remove(&one);
        }
    }
}

fn is_idle(used: Instant, now: Instant) -> bool {
    now.saturating_duration_since(used) >= IDLE
}

/// Each end with the other one. A session of a node with itself has only one end.
fn both(a: Connection, b: Connection) -> impl Iterator<Item = (Connection, Connection)> {
    std::iter::once((a, b)).chain((a != b).then_some((b, a)))
}

#[cfg(test)]
impl Sessions {
    /// Panics unless all indexes agree with the open sessions, of which no two nodes have more than
    /// `of_pair`.
    pub(super) fn check(&self, of_pair: usize, is_here: impl Fn(Connection) -> bool) {
        let mut of: HashMap<Connection, NodeSessions> = HashMap::new();
        for ((a, b), open) in &self.open {
            assert!(is_here(*a) && is_here(*b) && (1..=of_pair).contains(&open.len()));
            for (one, other) in both(*a, *b) {
                let own = of.entry(one).or_default();
                own.count += open.len();
                own.others.insert(other);
            }
        }
        let plain = |of: &HashMap<Connection, NodeSessions>| {
            let all = of.iter().map(|(node, own)| (*node, own.count, own.others.clone()));
            all.collect::<BTreeSet<_>>()
        };
        assert_eq!(plain(&of), plain(&self.by_node));
        assert_eq!(self.count, self.open.values().map(HashMap::len).sum::<usize>());
    }
}
