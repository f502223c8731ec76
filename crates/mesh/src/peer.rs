//! One peer, and all of them.
//!
//! A peer is known from mDNS, from a relay's list, from its own hello, or from the settings. It has at most one
//! link on the LAN and one relay session; `Peer::link` is the one to use. What it says of itself
//! ([`PeerFacts`]) comes with hellos, heartbeats and capabilities.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::NodeId;
use protocol::mesh::{Hardware, cluster::Thermal};
use tokio::{sync::Notify, time::Instant};

use crate::link::{Carrier, Link};

/// The id of a peer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerId {
    /// A node with a key: proved on sealed links and at Warren's relays.
    Node(NodeId),
    /// A stock device on the LAN, known only by the UUID that it tells, in lower case.
    Device(String),
}

impl PeerId {
    /// The node, if it is one.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Node(node) => Some(node),
            Self::Device(_) => None,
        }
    }

    /// A short form, for logs and tables.
    pub fn short(&self) -> String {
        match self {
            Self::Node(node) => node.short(),
            Self::Device(uuid) => uuid.chars().take(8).collect(),
        }
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "{node}"),
            Self::Device(uuid) => write!(f, "device-{uuid}"),
        }
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for PeerId {
    type Err = base::NotANodeId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.strip_prefix("device-") {
            Some(uuid) => Ok(Self::Device(uuid.to_ascii_lowercase())),
            None => text.parse().map(Self::Node),
        }
    }
}

/// The facts that a peer sends about itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PeerFacts {
    /// For people.
    pub name: String,
    /// Its hardware.
    pub hardware: Hardware,
    /// The models that it serves now.
    pub models: Vec<String>,
    /// How many requests it takes at once; 0 counts as 1.
    pub capacity: u32,
    /// Whether it takes requests at all.
    pub available: bool,
    /// From 0, paused, to 100.
    pub throttle: u8,
    /// How hot it is.
    pub thermal: Thermal,
    /// How many requests wait there.
    pub queue_depth: u32,
    /// When it said so.
    pub queue_told: Option<Instant>,
    /// Whether it answers anything now.
    pub generating: bool,
    /// Tokens a second, as it measures them.
    pub speed: Option<f64>,
    /// The version of its Warren, if it is one.
    pub warren: Option<String>,
    /// Whether it has said hello.
    pub greeted: bool,
    /// Whether it tells how it is doing itself, on a link that is there.
    pub beats: bool,
}

/// A peer.
pub struct Peer {
    /// Its id.
    pub id: PeerId,
    state: Mutex<PeerState>,
    /// Told when a link comes or goes.
    pub(crate) changed: Notify,
}

#[derive(Default)]
struct PeerState {
    facts: PeerFacts,
    lan: Option<Arc<Link>>,
    relayed: Option<Arc<Link>>,
    /// When it was last heard of on a link.
    heard: Option<Instant>,
    /// Hosts of the relays that list it now.
    relays: Vec<Arc<str>>,
}

impl Peer {
    fn new(id: PeerId) -> Self {
        Self { id, state: Mutex::default(), changed: Notify::new() }
    }

    /// The facts that it sends about itself.
    pub fn facts(&self) -> PeerFacts {
        self.lock().facts.clone()
    }

    /// Changes what is known of it.
    pub(crate) fn learn(&self, change: impl FnOnce(&mut PeerFacts)) {
        change(&mut self.lock().facts);
    }

    /// The best link that something can be asked over: on the LAN before through a relay.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        let state = self.lock();
        let usable = |link: &&Arc<Link>| link.is_usable();
        state.lan.as_ref().filter(usable).or(state.relayed.as_ref().filter(usable)).cloned()
    }

    /// Its link of this sort: on the LAN, or through a relay.
    pub(crate) fn link_of(&self, lan: bool) -> Option<Arc<Link>> {
        let state = self.lock();
        if lan { state.lan.clone() } else { state.relayed.clone() }
    }

    /// Puts a link in the place of its sort. The one that has to go, if there are two now: the one
    /// that was there, or this one. `tie` says of two on the LAN whether the second, newer one stays.
    fn put_link(
        &self,
        link: Arc<Link>,
        tie: impl FnOnce(&Link, &Link) -> bool,
    ) -> Option<Arc<Link>> {
        let mut state = self.lock();
        let on_lan = matches!(link.carrier, Carrier::Lan(_));
        let place = if on_lan { &mut state.lan } else { &mut state.relayed };
        let old = place.as_ref().filter(|old| !old.is_closed());
        if on_lan && old.is_some_and(|old| !tie(old, &link)) {
            return Some(link);
        }
        // Stock gateways open a session for each request: the newest is the one to use, all go on.
        let one_of_many = link.is_one_of_many();
        let old = place.replace(link);
        state.heard = Some(Instant::now());
        drop(state);
        self.changed.notify_waiters();
        old.filter(|old| !(one_of_many && old.is_one_of_many()))
    }

    /// Takes a link out, if it is still in its place.
    pub(crate) fn take_link(&self, number: u64) {
        let mut state = self.lock();
        let is = |link: &Option<Arc<Link>>| link.as_ref().is_some_and(|it| it.number == number);
        if is(&state.lan) {
            state.lan = None;
        }
        if is(&state.relayed) {
            state.relayed = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn heard(&self) {
        self.lock().heard = Some(Instant::now());
    }

    /// For how long it was not heard of; `None` if it never was.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.lock().heard.map(|heard| heard.elapsed())
    }

    /// A relay lists it, or does no longer.
    pub(crate) fn listed(&self, relay: &Arc<str>, is: bool) {
        let mut state = self.lock();
        state.relays.retain(|other| other != relay);
        if is {
            state.relays.push(Arc::clone(relay));
        }
    }

    /// The relays that list it now.
    pub(crate) fn relays(&self) -> Vec<Arc<str>> {
        self.lock().relays.clone()
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most peers that are known at once.
pub(crate) const MAX_PEERS: usize = 10_000;

/// All peers that are known.
#[derive(Default)]
pub struct Peers(Mutex<HashMap<PeerId, Arc<Peer>>>);

impl Peers {
    /// The peer of this id; made known, if it was not. `None` when too many are known.
    pub(crate) fn meet(&self, id: &PeerId) -> Option<Arc<Peer>> {
        let mut peers = self.lock();
        if let Some(peer) = peers.get(id) {
            return Some(Arc::clone(peer));
        }
        if peers.len() >= MAX_PEERS {
            return None;
        }
        let peer = Arc::new(Peer::new(id.clone()));
        peers.insert(id.clone(), Arc::clone(&peer));
        Some(peer)
    }

    /// Gives a peer its link, and makes it known if it was not: the peer, and the link that has to go if
    /// there are two now (the one that it had, or this one; `tie` says of two on the LAN whether the
    /// second, newer one stays). `None` when too many are known.
    pub(crate) fn link(
        &self,
        link: &Arc<Link>,
        tie: impl FnOnce(&Link, &Link) -> bool,
    ) -> Option<(Arc<Peer>, Option<Arc<Link>>)> {
        // Under the lock, so that it is not forgotten before it has its link.
        let mut peers = self.lock();
        let is_known = peers.contains_key(&link.peer);
        if !is_known && peers.len() >= MAX_PEERS {
            return None;
        }
        let new = || Arc::new(Peer::new(link.peer.clone()));
        let peer = peers.entry(link.peer.clone()).or_insert_with(new);
        Some((Arc::clone(peer), peer.put_link(Arc::clone(link), tie)))
    }

    /// The peer of this id, if it is known.
    pub fn get(&self, id: &PeerId) -> Option<Arc<Peer>> {
        self.lock().get(id).cloned()
    }

    /// Whether a peer can be asked over a link on the local network.
    pub(crate) fn is_near(&self, peer: &NodeId) -> bool {
        let peer = self.get(&PeerId::Node(*peer));
        peer.and_then(|peer| peer.link_of(true)).is_some_and(|link| link.is_usable())
    }

    /// All that are known, in the order of their ids.
    pub fn all(&self) -> Vec<Arc<Peer>> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Forgets a peer that has no link and that no relay lists. Whether it is forgotten.
    pub(crate) fn forget(&self, id: &PeerId) -> bool {
        let mut peers = self.lock();
        let unused = peers.get(id).is_some_and(|peer| {
            let state = peer.lock();
            state.lan.is_none() && state.relayed.is_none() && state.relays.is_empty()
        });
        if unused {
            peers.remove(id);
        }
        unused
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PeerId, Arc<Peer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
