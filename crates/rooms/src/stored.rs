//! The stored form of a participant.

use std::net::{IpAddr, SocketAddr};

use base::{ClientAddress, ParticipantId, RoomId};
use protocol::room::{Capabilities, MachineSpecs, RuntimeConfig};
use serde::{Deserialize, Serialize};
use store::{KeyDigest, ParticipantRecord};

use crate::participant::{JoinRequest, Kind};

/// The profile of a participant, as stored. Its id and its session have columns of their own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) nickname: String,
    pub(crate) models: Vec<String>,
    pub(crate) endpoint: String,
    pub(crate) specs: MachineSpecs,
    pub(crate) config: RuntimeConfig,
    pub(crate) capabilities: Capabilities,
    pub(crate) kind: StoredKind,
    pub(crate) max_concurrent: u32,
}

/// [`Kind`], as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StoredKind {
    Tunnel,
    Worker,
    Endpoint(SocketAddr),
}

/// The stored fields of a participant, except its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredParticipant {
    pub(crate) about: About,
    /// The address that it joined from.
    pub(crate) from: IpAddr,
    /// Whether a proxy passed the join on.
    #[serde(default)]
    pub(crate) by_proxy: bool,
    /// Whether its session token was ever shown.
    pub(crate) proven: bool,
    pub(crate) joined_at: u64,
    pub(crate) updated_at: u64,
    /// When the server last heard of it.
    pub(crate) seen: u64,
}

impl StoredParticipant {
    /// The address from which it joined.
    pub(crate) const fn from(&self) -> ClientAddress {
        let from = ClientAddress::new(self.from);
        if self.by_proxy { from.by_proxy() } else { from }
    }
}

impl About {
    pub(crate) fn of(request: JoinRequest) -> Self {
        let JoinRequest { nickname, models, endpoint, specs, config, capabilities, kind, .. } =
            request;
        let max_concurrent = request.max_concurrent.max(1);
        let kind = match kind {
            Kind::Tunnel => StoredKind::Tunnel,
            Kind::Worker => StoredKind::Worker,
            Kind::Endpoint(address) => StoredKind::Endpoint(address),
        };
        Self { nickname, models, endpoint, specs, config, capabilities, kind, max_concurrent }
    }
}

impl StoredKind {
    /// Whether it reconnects after its connection is lost.
    pub(crate) const fn comes_back(self) -> bool {
        !matches!(self, Self::Tunnel)
    }

    pub(crate) const fn shown(self) -> Kind {
        match self {
            Self::Tunnel => Kind::Tunnel,
            Self::Worker => Kind::Worker,
            Self::Endpoint(address) => Kind::Endpoint(address),
        }
    }
}

/// The record of a participant.
pub(crate) fn record(
    room: &RoomId,
    id: &str,
    session: KeyDigest,
    stored: &StoredParticipant,
) -> ParticipantRecord {
    // Numbers, texts and lists of them always serialise.
    let json = serde_json::to_string(stored).unwrap_or_default();
    ParticipantRecord { room: room.clone(), id: ParticipantId::from(id), session, json }
}
