//! What all parts of the mesh know of this machine: its identity, its settings, its tasks, and what
//! it counts.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError, atomic::AtomicU32},
};

use base::NodeId;
use scheduler::Scheduler;
use seal::{Identity, PasscodeKey};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    facts::Facts,
    link::Link,
    peer::{Peer, PeerId},
    settings::Settings,
};

/// This machine.
pub(crate) struct ThisMachine {
    pub(crate) settings: Settings,
    pub(crate) identity: Identity,
    /// Derived from the passcode, if there is one.
    pub(crate) psk: Option<PasscodeKey>,
    /// The facts that it sends to peers about itself.
    pub(crate) facts: Facts,
    pub(crate) counts: Counts,
    /// The tasks of links and answers, so that the mesh can wait for their end.
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl ThisMachine {
    /// `lent` is the number of peers' requests that are being answered here.
    pub(crate) fn new(
        settings: Settings,
        identity: Identity,
        psk: Option<PasscodeKey>,
        scheduler: Scheduler,
        lent: Arc<AtomicU32>,
    ) -> Self {
        Self {
            facts: Facts::new(&settings, identity.node_id(), scheduler, lent),
            settings,
            identity,
            psk,
            counts: Counts::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    pub(crate) fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    /// Whether a node is trusted without proving the passcode.
    pub(crate) fn trusts(&self, node: &NodeId) -> bool {
        self.settings.trusted.contains(node)
    }

    /// Whether requests of this machine may go to a peer. With a passcode they go only to peers
    /// that prove it or are trusted, and with `require_sealed` only to Warrens. A Warren without a
    /// link passes this check; its proof is checked once there is a link.
    pub(crate) fn may_ask(&self, peer: &Peer) -> bool {
        let is_trusted = |peer: &PeerId| peer.node().is_some_and(|node| self.trusts(node));
        match peer.link() {
            Some(link) => self.may_ask_over(&link),
            None if self.settings.require_sealed => peer.facts().warren.is_some(),
            None => self.psk.is_none() || is_trusted(&peer.id) || peer.facts().warren.is_some(),
        }
    }

    /// Whether requests of this machine may go over a link.
    pub(crate) fn may_ask_over(&self, link: &Link) -> bool {
        self.psk.is_none() || link.proved
    }
}

/// The most kinds of bad messages that are counted separately.
const MAX_KINDS: usize = 32;

/// Counts of messages that made no sense, and of problems that a person has to solve.
#[derive(Default)]
pub(crate) struct Counts {
    bad: Mutex<BTreeMap<String, u64>>,
    problems: Mutex<BTreeMap<String, u64>>,
}

impl Counts {
    /// Counts a message of this kind that was not understood.
    pub(crate) fn bad(&self, kind: &str) {
        let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        // Peers choose the kinds. Without a bound a peer could fill the memory with them.
        let kind = if bad.len() < MAX_KINDS || bad.contains_key(kind) { kind } else { "other" };
        *bad.entry(kind.to_owned()).or_default() += 1;
    }

    /// Messages that were not understood, by kind.
    pub(crate) fn bad_by_kind(&self) -> BTreeMap<String, u64> {
        self.bad.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a problem that a person has to solve, in words for people.
    pub(crate) fn problem(&self, what: &str) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < MAX_KINDS || problems.contains_key(what) {
            *problems.entry(what.to_owned()).or_default() += 1;
        }
    }

    /// Problems that a person has to solve, with how often each was met.
    pub(crate) fn problems(&self) -> BTreeMap<String, u64> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
