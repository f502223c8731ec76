//! The administrator's view.
//!
//! - `look`: this machine, its peers, its relays
//! - `models`: the models of the mesh
//! - `pull`: fetching a model on request

mod look;
mod models;
mod pull;

use std::collections::BTreeMap;

pub use self::pull::{NoPull, Pulling};
use crate::{Mesh, link::Carrier};

/// Counts, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeshCounts {
    /// Peers linked to on the local network.
    pub lan: usize,
    /// Peers linked to through relays only.
    pub relayed: usize,
    /// Peers that a relay lists, with no link yet.
    pub listed: usize,
    /// Requests of peers that are being answered.
    pub lent: u32,
    /// Parts of answers that nobody waited for.
    pub late: u64,
    /// Messages that made no sense, by kind.
    pub bad: BTreeMap<String, u64>,
    /// Problems that a person has to solve.
    pub problems: usize,
    /// Bytes of models that came.
    pub bytes_in: u64,
    /// Bytes of models that went.
    pub bytes_out: u64,
    /// Pieces of models that were not what they should be.
    pub corrupt: u64,
}

impl Mesh {
    /// How many peers there is a link to.
    pub fn linked(&self) -> usize {
        self.0.peers.all().iter().filter(|peer| peer.link().is_some()).count()
    }

    /// The counts.
    pub fn counts(&self) -> MeshCounts {
        let node = &self.0;
        let transfers = node.transfers.counts();
        let mut counts = MeshCounts {
            lent: node.inbound.lent().load(std::sync::atomic::Ordering::Relaxed),
            late: node.seats.late(),
            bad: node.own.counts.bad_by_kind(),
            problems: self.problems().len(),
            bytes_in: transfers.bytes_in,
            bytes_out: transfers.bytes_out,
            corrupt: transfers.corrupt,
            ..MeshCounts::default()
        };
        for peer in node.peers.all() {
            match peer.link().map(|link| link.carrier.clone()) {
                Some(Carrier::Lan(_)) => counts.lan += 1,
                Some(Carrier::Relay(_)) => counts.relayed += 1,
                None if peer.relays().is_empty() => {}
                None => counts.listed += 1,
            }
        }
        counts
    }
}
