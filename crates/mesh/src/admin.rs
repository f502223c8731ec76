//! The administrator's view: this machine, its peers, its mesh relays, and counts for metrics.
//!
//! - `models`: the models of the mesh
//! - `pull`: fetching a model on request

mod models;
mod pull;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering},
};

use protocol::admin::mesh::{MeshId, MeshPeer, MeshPeers, MeshRelayJson, MeshTransfers};

pub use self::pull::{ModelPull, NoPull};
use crate::{
    Mesh,
    link::{Carrier, Link},
    peer::{Peer, PeerFacts},
    share::Sharing,
    wan::RelayStatus,
};

/// Counts, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeshCounts {
    /// Peers with a link on the local network.
    pub lan: usize,
    /// Peers with a link through a mesh relay only.
    pub relayed: usize,
    /// Peers without a link that a mesh relay lists.
    pub listed: usize,
    /// Requests of peers that are being answered.
    pub lent: u32,
    /// Parts of answers for which no job waited.
    pub late: u64,
    /// Messages that were not understood, by kind.
    pub bad: BTreeMap<String, u64>,
    /// Problems that a person has to solve.
    pub problems: usize,
    /// Bytes of models that were received.
    pub bytes_in: u64,
    /// Bytes of models that were sent.
    pub bytes_out: u64,
    /// Pieces of models that were received and were wrong.
    pub corrupt: u64,
}

impl Mesh {
    /// This machine's identity in the mesh, and its problems.
    pub fn describe(&self) -> MeshId {
        let node = &self.0;
        let id = self.id();
        MeshId {
            id: id.to_string(),
            fingerprint: id.fingerprint(),
            name: node.machine.settings.name.clone(),
            listen: node.machine.facts.listening().map(|bound| bound.to_string()),
            share: sharing(node.machine.settings.share.with).to_owned(),
            relays: node.wan.status().into_iter().map(relay).collect(),
            problems: self.problems(),
        }
    }

    /// All known peers, in the order of their ids, and those that could not be linked to.
    pub fn peers(&self) -> MeshPeers {
        let speeds = self.speeds();
        let row = |peer: &Arc<Peer>| {
            let speed = speeds.get(&format!("peer:{}", peer.id)).copied();
            peer_row(peer, speed)
        };
        let unlinked = self.0.lan.unlinked.list();
        MeshPeers { peers: self.0.peers.all().iter().map(row).collect(), unlinked }
    }

    /// The transfers that run, and the last ones that ended.
    pub fn transfers(&self) -> MeshTransfers {
        MeshTransfers { transfers: self.0.transfers.list() }
    }

    /// The number of peers with a link.
    pub fn linked(&self) -> usize {
        self.0.peers.all().iter().filter(|peer| peer.link().is_some()).count()
    }

    /// The counts as of now.
    pub fn counts(&self) -> MeshCounts {
        let node = &self.0;
        let transfers = node.transfers.counts();
        let mut counts = MeshCounts {
            lent: node.inbound.lent().load(Ordering::Relaxed),
            late: node.providers.late(),
            bad: node.machine.counts.bad_by_kind(),
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

    /// Problems that a person has to solve, in words.
    fn problems(&self) -> Vec<String> {
        let met = self.0.machine.counts.problems().into_keys();
        let at_relays = self.0.wan.status().into_iter().filter_map(|relay| {
            let problem = relay.problem?;
            Some(format!("{}: {problem}", relay.host))
        });
        met.chain(at_relays).collect()
    }

    /// The speed of peers, by their names at the scheduler.
    fn speeds(&self) -> HashMap<String, f64> {
        let workers = self.0.scheduler.status().workers;
        workers.into_iter().filter_map(|worker| Some((worker.name, worker.speed?))).collect()
    }
}

fn sharing(with: Sharing) -> &'static str {
    match with {
        Sharing::Off => "off",
        Sharing::Peers => "peers",
        Sharing::Anyone => "anyone",
    }
}

fn relay(status: RelayStatus) -> MeshRelayJson {
    MeshRelayJson {
        url: status.url,
        connected: status.registered,
        challenged: status.challenged,
        error: status.last_error.filter(|_| !status.registered),
    }
}

fn peer_row(peer: &Peer, speed: Option<f64>) -> MeshPeer {
    let facts = peer.facts();
    // A link that has been silent for a while is still shown.
    let link = peer.link().or_else(|| peer.link_of(true)).or_else(|| peer.link_of(false));
    let relays = peer.relays();
    let (way, address) = match link.as_ref().map(|link| &link.carrier) {
        Some(Carrier::Lan(address)) => ("lan", Some(address.to_string())),
        Some(Carrier::Relay(host)) => ("relay", Some(host.to_string())),
        None if relays.is_empty() => ("none", None),
        None => ("listed", relays.first().map(ToString::to_string)),
    };
    MeshPeer {
        id: peer.id.to_string(),
        link: way.to_owned(),
        address,
        sealed: link.as_ref().is_some_and(|link| link.sealed),
        status: status(link.as_deref(), !relays.is_empty(), &facts).to_owned(),
        capacity: facts.capacity.max(1),
        queue_depth: facts.queue_depth,
        generating: facts.generating,
        throttle: facts.throttle,
        thermal: facts.thermal.as_str().to_owned(),
        tokens_per_second: speed.or(facts.speed),
        ram_gb: facts.hardware.total_ram_gb,
        heard_secs: peer.silence().map(|silence| silence.as_secs()),
        name: facts.name,
        models: facts.models,
        chip: facts.hardware.chip_name,
        warren: facts.warren,
    }
}

fn status(link: Option<&Link>, listed: bool, facts: &PeerFacts) -> &'static str {
    match link {
        None if !listed => "unlinked",
        Some(link) if !link.is_usable() => "degraded",
        _ if !facts.available => "unavailable",
        Some(_) if facts.throttle == 0 => "paused",
        None => "unlinked",
        Some(_) => "ok",
    }
}
