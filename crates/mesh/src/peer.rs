//! One peer, and all of them.
//!
//! A peer is known while a link leads to it or a mesh relay lists it. At most one link on the LAN
//! and one relay session to it are used; `Peer::link` is the better one. What it sends about itself
//! ([`PeerFacts`]) comes with hellos, heartbeats and capabilities.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{NodeId, Thermal};
use protocol::mesh::Hardware;
use tokio::{sync::Notify, time::Instant};

use crate::link::{Carrier, Link};

/// The id of a peer.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerId {
    /// A node with a key, which is proved on sealed links and at Warren's mesh relays.
    Node(NodeId),
    /// A stock device on the LAN, known only by the UUID that it sends, in lower case.
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
    /// The name for people.
    pub name: String,
    /// Its hardware.
    pub hardware: Hardware,
    /// The models that it serves now.
    pub models: Vec<String>,
    /// How many requests it takes at once; 0 counts as 1.
    pub capacity: u32,
    /// Whether it takes requests at all.
    pub available: bool,
    /// The share of its speed that it offers, in per cent; 0 while it is paused.
    pub throttle: u8,
    /// Its thermal state.
    pub thermal: Thermal,
    /// How many requests wait at the peer.
    pub queue_depth: u32,
    /// When `queue_depth` was reported.
    pub queue_reported: Option<Instant>,
    /// Whether it is answering requests now.
    pub generating: bool,
    /// Its speed in tokens a second, as it measures it.
    pub speed: Option<f64>,
    /// The version of its Warren, if it is one.
    pub warren: Option<String>,
    /// Whether it has said hello.
    pub greeted: bool,
    /// Whether it sends heartbeats over a link now.
    pub beats: bool,
}

/// A peer.
pub struct Peer {
    /// Its id.
    pub id: PeerId,
    state: Mutex<PeerState>,
    /// Notified when a link comes or goes.
    pub(crate) changed: Notify,
}

#[derive(Default)]
struct PeerState {
    facts: PeerFacts,
    lan: Option<Arc<Link>>,
    relayed: Option<Arc<Link>>,
    /// When something last came over a link.
    heard: Option<Instant>,
    /// Hosts of the mesh relays that list it now.
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

    /// Changes the facts about it.
    pub(crate) fn learn(&self, change: impl FnOnce(&mut PeerFacts)) {
        change(&mut self.lock().facts);
    }

    /// The link for requests: one on the LAN before one through a mesh relay. `None` if none is
    /// usable.
    pub(crate) fn link(&self) -> Option<Arc<Link>> {
        let state = self.lock();
        let usable = |link: &&Arc<Link>| link.is_usable();
        state.lan.as_ref().filter(usable).or(state.relayed.as_ref().filter(usable)).cloned()
    }

    /// Its link on the LAN, or the one through a mesh relay, usable or not.
    pub(crate) fn link_of(&self, lan: bool) -> Option<Arc<Link>> {
        let state = self.lock();
        if lan { state.lan.clone() } else { state.relayed.clone() }
    }

    /// Sets its link for this kind of carrier. If there was one already, returns the one of the two
    /// that must be closed. `tie` says, of two on the LAN, whether the second, newer one stays.
    fn put_link(
        &self,
        link: Arc<Link>,
        tie: impl FnOnce(&Link, &Link) -> bool,
    ) -> Option<Arc<Link>> {
        let mut state = self.lock();
        let on_lan = matches!(link.carrier, Carrier::Lan(_));
        let current = if on_lan { &mut state.lan } else { &mut state.relayed };
        let old = current.as_ref().filter(|old| !old.is_closed());
        if on_lan && old.is_some_and(|old| !tie(old, &link)) {
            return Some(link);
        }
        // Stock gateways open a relay session for each request. The newest is used, and none is
        // closed.
        let one_of_many = link.is_one_of_many();
        let old = current.replace(link);
        state.heard = Some(Instant::now());
        // Unlocked first, since a task that wakes looks at the links at once.
        drop(state);
        self.changed.notify_waiters();
        old.filter(|old| !(one_of_many && old.is_one_of_many()))
    }

    /// Removes a link, unless another one has replaced it.
    pub(crate) fn take_link(&self, number: u64) {
        let mut state = self.lock();
        let is = |link: &Option<Arc<Link>>| link.as_ref().is_some_and(|link| link.number == number);
        if is(&state.lan) {
            state.lan = None;
        }
        if is(&state.relayed) {
            state.relayed = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes that a message came over a link.
    pub(crate) fn heard(&self) {
        self.lock().heard = Some(Instant::now());
    }

    /// How long no message has come over a link; `None` if none ever has.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.lock().heard.map(|heard| heard.elapsed())
    }

    /// Sets whether a mesh relay lists it.
    pub(crate) fn set_listed(&self, relay: &Arc<str>, is: bool) {
        let mut state = self.lock();
        state.relays.retain(|other| other != relay);
        if is {
            state.relays.push(Arc::clone(relay));
        }
    }

    /// The mesh relays that list it now.
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
    /// The peer with this id, which becomes known if it was not. `None` if too many peers are
    /// known.
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

    /// Sets the link of a peer, which becomes known if it was not. Returns the peer and, if it had
    /// such a link already, the one of the two that must be closed. `tie` says, of two on the LAN,
    /// whether the second, newer one stays. `None` if too many peers are known.
    pub(crate) fn link(
        &self,
        link: &Arc<Link>,
        tie: impl FnOnce(&Link, &Link) -> bool,
    ) -> Option<(Arc<Peer>, Option<Arc<Link>>)> {
        // Held until the link is set, so that the peer is not forgotten before that.
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

    /// All known peers, in the order of their ids.
    pub fn all(&self) -> Vec<Arc<Peer>> {
        let mut all: Vec<_> = self.lock().values().cloned().collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Forgets a peer that has no link and that no mesh relay lists. Returns whether it did.
    pub(crate) fn forget(&self, id: &PeerId) -> bool {
        // The lock is held throughout. Otherwise a link could be set in between, and be lost with
        // the peer.
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
