//! Requests about the cluster, which may consist of this machine alone.

use std::{collections::BTreeMap, time::Duration};

use cluster::{Cluster, Through};
use jiff::Timestamp;
use protocol::workspace::{
    ClusterMember, ClusterStatus, RequestKind, ServerMessage,
    client::{
        ClusterActionAck, ClusterConfig, ClusterForget, ClusterInvitation, ClusterInviteList,
        ClusterJoin, ClusterRevokeInvite, ClusterStatusReply, OpenInvite, RenameNode,
        UpdateClusterConfig,
    },
    cluster::{ELECTION_TIMEOUT_MAX_MS, ELECTION_TIMEOUT_MIN_MS, ROLE},
};

use workspace::Refusal;

use super::asker::{Answer, Asker};
use crate::services::Node;

/// The port for other members that is reported while this machine is in no cluster.
const PEER_PORT: u16 = 9179;
const ALONE: &str = "this server is in no cluster: there is nothing to change";
/// The interval of heartbeats that is reported while this machine is in no cluster, in milliseconds.
const HEARTBEAT_MS: u64 = 1000;

pub(crate) fn nothing_to_do(kind: RequestKind) -> Answer {
    ack(kind, true, "nobody leads this cluster, and nothing has to be synchronised by hand")
}

pub(crate) fn status(asker: &Asker) -> Answer {
    let node = &asker.services.node;
    let node_id = node.id.clone();
    let cluster = asker.services.membership.cluster();
    let this = cluster.as_ref().map(Cluster::this);
    let peers = cluster.as_ref().map(members).unwrap_or_default();
    let mut notices = cluster.as_ref().map(Cluster::notices).unwrap_or_default();
    notices.extend(namesakes(this.as_ref().map(|this| &*this.name), &peers));
    let cluster = ClusterStatus {
        role: ROLE.to_owned(),
        term: 0,
        leader_id: Some(node_id.clone()),
        leader_address: address(node),
        name: this.as_ref().map(|this| this.name.clone()),
        address: this.and_then(|this| this.addresses.into_iter().next()),
        notices,
        peers,
        node_id,
    };
    Ok(Some(ServerMessage::ClusterStatus(ClusterStatusReply { cluster })))
}

pub(crate) fn config(asker: &Asker) -> Answer {
    let node = &asker.services.node;
    let cluster = asker.services.membership.cluster();
    let cluster = cluster.as_ref();
    let heartbeat = cluster.map(|cluster| base::millis(cluster.heartbeat()));
    Ok(Some(ServerMessage::ClusterConfig(ClusterConfig {
        node_id: node.id.clone(),
        peer_port: cluster.map_or(PEER_PORT, Cluster::port),
        peers: cluster.map(Cluster::peers).unwrap_or_default(),
        heartbeat_interval_ms: heartbeat.unwrap_or(HEARTBEAT_MS),
        election_timeout_min_ms: ELECTION_TIMEOUT_MIN_MS,
        election_timeout_max_ms: ELECTION_TIMEOUT_MAX_MS,
        min_quorum: None,
        advertise_addresses: address(node).into_iter().collect(),
    })))
}

/// Dials other addresses from now on.
pub(crate) async fn update(asker: &Asker, request: UpdateClusterConfig) -> Answer {
    let kind = RequestKind::UpdateClusterConfig;
    let Some(cluster) = asker.services.membership.cluster() else { return alone(kind) };
    let Some(peers) = request.peers else {
        return ack(kind, false, "the heartbeat's interval is set when the server starts");
    };
    match cluster.set_peers(peers).await {
        Ok(()) => {
            asker.note("cluster.update", cluster.node_id(), "done");
            ack(kind, true, "the peers are dialled, and the others are hung up")
        }
        Err(error) => ack(kind, false, &base::error::chain(&error)),
    }
}

/// Gives this machine another name. A request that names another member has been sent to that member.
pub(crate) async fn rename(asker: &Asker, request: RenameNode) -> Answer {
    let kind = RequestKind::RenameNode;
    let Some(cluster) = asker.services.membership.cluster() else { return alone(kind) };
    // A name that two machines have cannot be used for either of them.
    if cluster.members().iter().any(|other| other.member.name == request.name) {
        return ack(kind, false, &format!("another node is called {:?} already", request.name));
    }
    match cluster.rename(request.name).await {
        Ok(()) => {
            asker.note("cluster.rename", cluster.node_id(), "done");
            ack(kind, true, "the node has its new name")
        }
        Err(error) => ack(kind, false, &base::error::chain(&error)),
    }
}

/// Invites one machine. A server that is in no cluster begins one.
pub(crate) async fn invite(asker: &Asker) -> Answer {
    let cluster =
        asker.services.membership.memberships()?.begin().await.map_err(Refusal::Invalid)?;
    let invited = cluster.invite().await.map_err(|error| Refusal::failed(&error))?;
    asker.note("cluster.invite", &invited.id, "done");
    Ok(Some(ServerMessage::ClusterInvitation(ClusterInvitation {
        invite_id: invited.id,
        code: invited.code.into(),
        expires_at: at(invited.until),
        addresses: invited.addresses,
    })))
}

/// The invitations that may still be used.
pub(crate) async fn invites(asker: &Asker) -> Answer {
    let open = match asker.services.membership.cluster() {
        Some(cluster) => cluster.invites().await,
        None => Vec::new(),
    };
    let invites = open.into_iter();
    let invites = invites.map(|open| OpenInvite { invite_id: open.id, expires_at: at(open.until) });
    let list = ClusterInviteList { invites: invites.collect() };
    Ok(Some(ServerMessage::ClusterInviteList(list)))
}

/// Withdraws an invitation.
pub(crate) async fn revoke(asker: &Asker, request: ClusterRevokeInvite) -> Answer {
    let id = &request.invite_id;
    let was_there = match asker.services.membership.cluster() {
        Some(cluster) => cluster.revoke_invite(id).await.map_err(|e| Refusal::failed(&e))?,
        None => false,
    };
    if !was_there {
        return Err(Refusal::Invalid(format!("there is no invitation {id:?}")));
    }
    asker.note("cluster.revoke_invite", id, "done");
    ack(RequestKind::ClusterRevokeInvite, true, "the invitation is withdrawn")
}

/// Joins a cluster by an invitation.
pub(crate) async fn join(asker: &Asker, request: ClusterJoin) -> Answer {
    let memberships = asker.services.membership.memberships()?;
    let joined = memberships.join(request.code.expose()).await.map_err(Refusal::Invalid);
    asker.note_outcome("cluster.join", &asker.services.node.id, &joined);
    let words = format!("this machine is a member of the cluster of {}", joined?);
    ack(RequestKind::ClusterJoin, true, &words)
}

/// Leaves the cluster.
pub(crate) async fn leave(asker: &Asker) -> Answer {
    let left = asker.services.membership.memberships()?.leave().await.map_err(Refusal::Invalid);
    asker.note_outcome("cluster.leave", &asker.services.node.id, &left);
    ack(RequestKind::ClusterLeave, true, &left?)
}

/// Takes another member out of the cluster.
pub(crate) async fn forget(asker: &Asker, request: ClusterForget) -> Answer {
    let Some(cluster) = asker.services.membership.cluster() else {
        return Err(Refusal::invalid(ALONE));
    };
    let forgotten = cluster.forget(&request.node_id).await;
    let forgotten = forgotten.map_err(|error| Refusal::failed(&error));
    asker.note_outcome("cluster.forget", &request.node_id, &forgotten);
    let words = format!(
        "{} is no member any more: it comes back only by an invitation, and the cluster has a new token",
        forgotten?
    );
    ack(RequestKind::ClusterForget, true, &words)
}

/// A time since 1970.
fn at(since_1970: Duration) -> Timestamp {
    Timestamp::UNIX_EPOCH.checked_add(since_1970).unwrap_or(Timestamp::MAX)
}

fn members(cluster: &Cluster) -> Vec<ClusterMember> {
    let member = |status: cluster::MemberStatus| ClusterMember {
        node_id: status.member.node_id,
        name: Some(status.member.name).filter(|name| !name.is_empty()),
        address: status.member.addresses.first().cloned(),
        connected: status.reachable,
        through: status.through.map(|through| match through {
            Through::Member(node) => cluster.name_of(&node),
            Through::Mesh => "the mesh".to_owned(),
        }),
    };
    cluster.members().into_iter().map(member).collect()
}

/// A notice for each name that several machines have. Machines keep their names when they join, and a name
/// that several have cannot be used for any of them.
fn namesakes(own: Option<&str>, members: &[ClusterMember]) -> Vec<String> {
    let mut machines: BTreeMap<&str, usize> = BTreeMap::new();
    let names = members.iter().filter_map(|member| member.name.as_deref());
    names.chain(own).for_each(|name| *machines.entry(name).or_default() += 1);
    let several = machines.into_iter().filter(|(_, machines)| *machines > 1);
    several
        .map(|(name, machines)| {
            format!(
                "{machines} machines are called {name}, so the name means none of them: give one of them \
                 another name with warren cluster rename"
            )
        })
        .collect()
}

fn alone(kind: RequestKind) -> Answer {
    ack(kind, false, ALONE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_several_machines_have_is_told_once() {
        let member = |name: Option<&str>| ClusterMember {
            node_id: "n".to_owned(),
            name: name.map(str::to_owned),
            address: None,
            connected: true,
            through: None,
        };
        let members = [Some("box"), Some("lab"), Some("lab"), None, None].map(member);
        assert_eq!(namesakes(Some("here"), &members).len(), 1);
        let warnings = namesakes(Some("box"), &members);
        assert!(warnings[0].starts_with("2 machines are called box, "), "{warnings:?}");
        assert!(warnings[1].starts_with("2 machines are called lab, "), "{warnings:?}");
        assert!(namesakes(None, &members[..2]).is_empty());
    }
}
