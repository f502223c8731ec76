//! Requests about the cluster, which consists of this machine alone.

use protocol::workspace::{
    ClusterStatus, RequestKind, ServerMessage,
    client::{ClusterActionAck, ClusterConfig, ClusterStatusReply},
    cluster::{ELECTION_TIMEOUT_MAX_MS, ELECTION_TIMEOUT_MIN_MS, ROLE},
};

use super::asker::{Answer, Asker};
use crate::services::Node;

/// The port for other members of the cluster, once there are any.
const PEER_PORT: u16 = 9179;
/// The interval of heartbeats between members, in milliseconds.
const HEARTBEAT_MS: u64 = 1000;

pub(crate) fn nothing_to_do(kind: RequestKind) -> Answer {
    ack(kind, true, "nobody leads this cluster, and nothing has to be synchronised by hand")
}

pub(crate) fn nothing_to_change(kind: RequestKind) -> Answer {
    ack(kind, false, "this server is in no cluster: there is nothing to change")
}

pub(crate) fn status(asker: &Asker) -> Answer {
    let node = &asker.services.node;
    let node_id = node.id.clone();
    let cluster = ClusterStatus {
        role: ROLE.to_owned(),
        term: 0,
        leader_id: Some(node_id.clone()),
        leader_address: address(node),
        peers: Vec::new(),
        node_id,
    };
    Ok(Some(ServerMessage::ClusterStatus(ClusterStatusReply { cluster })))
}

pub(crate) fn config(asker: &Asker) -> Answer {
    let node = &asker.services.node;
    Ok(Some(ServerMessage::ClusterConfig(ClusterConfig {
        node_id: node.id.clone(),
        peer_port: PEER_PORT,
        peers: Vec::new(),
        heartbeat_interval_ms: HEARTBEAT_MS,
        election_timeout_min_ms: ELECTION_TIMEOUT_MIN_MS,
        election_timeout_max_ms: ELECTION_TIMEOUT_MAX_MS,
        min_quorum: None,
        advertise_addresses: address(node).into_iter().collect(),
    })))
}

/// The address at which clients reach this server, if it is known.
fn address(node: &Node) -> Option<String> {
    let url = node.gateway.get()?.url;
    let (_, rest) = url.split_once("://")?;
    Some(rest.trim_end_matches('/').to_owned())
}

fn ack(kind: RequestKind, ok: bool, words: &str) -> Answer {
    let (action, message) = (kind.name().to_owned(), words.to_owned());
    Ok(Some(ServerMessage::ClusterActionAck(ClusterActionAck { action, ok, message })))
}
