//! The cluster, as it is as long as this machine is alone.

use protocol::workspace::{
    ClientMessage, ClusterStatus, ServerMessage,
    client::{ClusterActionAck, ClusterConfig, ClusterStatusReply},
    cluster::{ELECTION_TIMEOUT_MAX_MS, ELECTION_TIMEOUT_MIN_MS, ROLE},
};

use crate::{refusal::Refusal, work::Shared};

/// Where other members reach this one, once there are any.
const PEER_PORT: u16 = 9179;
/// How often members tell each other what they know, in milliseconds.
const HEARTBEAT_MS: u64 = 1000;

pub(super) fn answer(shared: &Shared, message: &ClientMessage) -> Result<ServerMessage, Refusal> {
    let nobody_leads = "nobody leads this cluster, and nothing has to be synchronised by hand";
    Ok(match message {
        ClientMessage::ClusterStatus => status(shared),
        ClientMessage::GetClusterConfig => config(shared),
        ClientMessage::ForceElection
        | ClientMessage::PromoteNode(_)
        | ClientMessage::TriggerSync => ack(message, true, nobody_leads),
        _ => ack(message, false, "this server is in no cluster: there is nothing to change"),
    })
}

fn status(shared: &Shared) -> ServerMessage {
    let node_id = shared.door.node_id.clone();
    let cluster = ClusterStatus {
        role: ROLE.to_owned(),
        term: 0,
        leader_id: Some(node_id.clone()),
        leader_address: address(shared),
        peers: Vec::new(),
        node_id,
    };
    ServerMessage::ClusterStatus(ClusterStatusReply { cluster })
}

fn config(shared: &Shared) -> ServerMessage {
    ServerMessage::ClusterConfig(ClusterConfig {
        node_id: shared.door.node_id.clone(),
        peer_port: PEER_PORT,
        peers: Vec::new(),
        heartbeat_interval_ms: HEARTBEAT_MS,
        election_timeout_min_ms: ELECTION_TIMEOUT_MIN_MS,
        election_timeout_max_ms: ELECTION_TIMEOUT_MAX_MS,
        min_quorum: None,
        advertise_addresses: address(shared).into_iter().collect(),
    })
}

/// Where clients reach this server, as far as it knows.
fn address(shared: &Shared) -> Option<String> {
    let url = shared.gateway()?.url;
    let (_, rest) = url.split_once("://")?;
    Some(rest.trim_end_matches('/').to_owned())
}

fn ack(message: &ClientMessage, ok: bool, words: &str) -> ServerMessage {
    let (action, message) = (message.name().to_owned(), words.to_owned());
    ServerMessage::ClusterActionAck(ClusterActionAck { action, ok, message })
}
