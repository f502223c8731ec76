//! The state that all links on the local network share.

use std::sync::{Arc, atomic::AtomicU64};

use base::Secret;
use rand::RngExt;

use super::{limits::Limits, sealed_peers::SealedPeers, unlinked::Unlinked};

/// The state that all links on the local network share.
pub(crate) struct Lan {
    /// Drawn at random, so that a link to this very process is told from one to another with its key.
    pub(super) instance: u64,
    /// Counts the connections that are begun.
    pub(super) dials: AtomicU64,
    /// The passcode as stock peers hash it.
    pub(super) hash: Option<String>,
    pub(super) seen: SealedPeers,
    pub(super) limits: Arc<Limits>,
    pub(crate) unlinked: Unlinked,
}

impl Lan {
    pub(crate) fn new(passcode: Option<&Secret>) -> Self {
        Self {
            instance: rand::rng().random(),
            dials: AtomicU64::new(1),
            hash: passcode.and_then(|passcode| seal::stock_hash(passcode.expose())),
            seen: SealedPeers::default(),
            limits: Arc::default(),
            unlinked: Unlinked::default(),
        }
    }
}
