//! The JSON of `/admin/mesh`: this machine among its peers.

use serde::{Deserialize, Serialize};

/// Answer of `GET /admin/mesh/id`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshId {
    /// The node's id: 64 hex digits.
    pub id: String,
    /// The same in short, for people to compare.
    pub fingerprint: String,
    /// Its name, for people.
    pub name: String,
    /// Where peers on the LAN connect to, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listen: Option<String>,
    /// The nodes that may query it: `off`, `peers` or `anyone`.
    pub share: String,
    /// The relays that it is registered at, or tries to be.
    pub relays: Vec<MeshRelayJson>,
    /// Problems that a person has to solve, such as another machine with the same key.
    pub problems: Vec<String>,
}

/// A relay that this machine is registered at.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshRelayJson {
    /// Where it is, without credentials.
    pub url: String,
    /// Whether it is connected.
    pub connected: bool,
    /// Whether the registration cannot be replayed.
    pub challenged: bool,
    /// The last error, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Answer of `GET /admin/mesh/peers`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshPeers {
    /// In the order of their ids.
    pub peers: Vec<MeshPeer>,
    /// Peers that were met in the last minutes, on the local network, and could not be linked to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlinked: Vec<MeshUnlinked>,
}

/// A peer that could not be linked to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeshUnlinked {
    /// As it was named, as mDNS has it, or the address that it called from.
    pub place: String,
    /// Why there is no link, in words.
    pub why: String,
    /// Seconds since it was met last.
    pub met_secs: u64,
}

/// A peer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshPeer {
    /// Its id: 64 hex digits, or `device-` and a UUID.
    pub id: String,
    /// The name that it gave itself.
    pub name: String,
    /// Its link: `lan`, `relay`, `listed` (by a relay, with no link yet) or `none`.
    pub link: String,
    /// Its address, or the relay's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Whether the link is sealed end to end.
    pub sealed: bool,
    /// `ok`, `degraded`, `paused`, `unavailable` or `unlinked`.
    pub status: String,
    /// The models that it serves now.
    pub models: Vec<String>,
    /// How many requests it takes at once.
    pub capacity: u32,
    /// How many requests wait there.
    pub queue_depth: u32,
    /// Whether it answers anything now.
    pub generating: bool,
    /// From 0, paused, to 100.
    pub throttle: u8,
    /// How hot it is: `nominal`, `fair`, `serious` or `critical`.
    pub thermal: String,
    /// Tokens a second, as measured; `null` before.
    pub tokens_per_second: Option<f64>,
    /// Its chip, for people.
    pub chip: String,
    /// Its memory, in GiB.
    pub ram_gb: f64,
    /// The version of its Warren; `null` of a stock peer.
    pub warren: Option<String>,
    /// Seconds since its last message; `null` if there was none.
    pub heard_secs: Option<u64>,
}

/// Answer of `GET /admin/mesh/models`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshModels {
    /// By name.
    pub models: Vec<MeshModel>,
}

/// A model, and the machines that have it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshModel {
    /// Its name.
    pub id: String,
    /// The size of its files, in bytes; `null` where it is unknown.
    pub bytes: Option<u64>,
    /// Peers that serve it now, by id.
    pub served_by: Vec<String>,
    /// Peers that pass its files on, by id.
    pub offered_by: Vec<String>,
    /// Whether this machine serves it.
    pub served_here: bool,
    /// Whether this machine has its files.
    pub files_here: bool,
}

/// Answer of `GET /admin/mesh/transfers`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshTransfers {
    /// The newest first.
    pub transfers: Vec<MeshTransfer>,
}

/// A model in transfer. Also a line of the answer of `POST /admin/mesh/pull`, which ends with one
/// whose state is `done`, `failed` or `cancelled`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeshTransfer {
    /// Its id.
    pub id: String,
    /// The model.
    pub model: String,
    /// `in` or `out`.
    pub direction: String,
    /// `searching`, `preparing`, `running`, `waiting`, `finishing`, `done`, `failed` or `cancelled`.
    pub state: String,
    /// Bytes that are there.
    pub bytes: u64,
    /// Bytes in all; `null` while that is unknown.
    pub total: Option<u64>,
    /// Bytes a second, over the last seconds.
    pub rate: u64,
    /// Seconds that are left, at this rate.
    pub eta_secs: Option<u64>,
    /// The peers that it comes from or goes to, by id.
    pub peers: Vec<String>,
    /// Where it was put, or why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Which kind of failure it is: `not_found`, `no_space`, `exists`, `refused`, `corrupt`, `lost`, `disk`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// Body of `POST /admin/mesh/pull`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeshPull {
    /// The model.
    pub model: String,
    /// The only peer to fetch it from, by id or by the beginning of its id or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}
