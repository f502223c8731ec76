//! The cluster: its machines, its setup and names, inviting machines, joining, leaving, and taking members out.

use std::time::Duration;

use base::Secret;
use protocol::workspace::{
    ClientMessage, ClusterStatus, RequestKind, ServerMessage,
    client::{
        ClusterConfig, ClusterForget, ClusterInvitation, ClusterJoin, ClusterRevokeInvite,
        OpenInvite, RenameNode, UpdateClusterConfig,
    },
};

use super::{answer::Answer, connection::Workspace, sessions::SOON};
use crate::error::ClientError;

/// The most time that joining takes: the server dials up to four addresses.
const JOINING: Duration = Duration::from_secs(90);

impl Workspace {
    /// Invites one machine into the cluster of the server, which begins one if necessary.
    ///
    /// # Errors
    /// As [`Workspace::request`], and when the server refuses; this holds for all methods below, too.
    pub async fn invite(&mut self) -> Result<ClusterInvitation, ClientError> {
        self.request(&ClientMessage::ClusterInvite, SOON, |reply| match reply {
            ServerMessage::ClusterInvitation(invitation) => Answer::Is(invitation),
            other => other.into(),
        })
        .await
    }

    /// The invitations that may still be used.
    ///
    /// # Errors
    /// As above.
    pub async fn invites(&mut self) -> Result<Vec<OpenInvite>, ClientError> {
        self.request(&ClientMessage::ClusterInvites, SOON, |reply| match reply {
            ServerMessage::ClusterInviteList(list) => Answer::Is(list.invites),
            other => other.into(),
        })
        .await
    }

    /// Withdraws an invitation. Returns the server's words.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such invitation.
    pub async fn revoke_invite(&mut self, invite_id: String) -> Result<String, ClientError> {
        let request = ClientMessage::ClusterRevokeInvite(ClusterRevokeInvite { invite_id });
        self.change_cluster(&request, RequestKind::ClusterRevokeInvite, SOON).await
    }

    /// Joins a cluster by the code of an invitation. Returns the server's words.
    ///
    /// # Errors
    /// As above.
    pub async fn join_cluster(&mut self, code: Secret) -> Result<String, ClientError> {
        let request = ClientMessage::ClusterJoin(ClusterJoin { code });
        self.change_cluster(&request, RequestKind::ClusterJoin, JOINING).await
    }

    /// Leaves the cluster. Returns the server's words.
    ///
    /// # Errors
    /// As above.
    pub async fn leave_cluster(&mut self) -> Result<String, ClientError> {
        self.change_cluster(&ClientMessage::ClusterLeave, RequestKind::ClusterLeave, SOON).await
    }

    /// Takes another member out of the cluster, by its id or name. Returns the server's words.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such member.
    pub async fn forget_member(&mut self, node_id: String) -> Result<String, ClientError> {
        let request = ClientMessage::ClusterForget(ClusterForget { node_id });
        self.change_cluster(&request, RequestKind::ClusterForget, SOON).await
    }

    /// The machine that is asked, and the others of its cluster.
    ///
    /// # Errors
    /// As above.
    pub async fn cluster_status(&mut self) -> Result<ClusterStatus, ClientError> {
        self.request(&ClientMessage::ClusterStatus, SOON, |reply| match reply {
            ServerMessage::ClusterStatus(status) => Answer::Is(status.cluster),
            other => other.into(),
        })
        .await
    }

    /// The server's setup as a member.
    ///
    /// # Errors
    /// As above.
    pub async fn cluster_config(&mut self) -> Result<ClusterConfig, ClientError> {
        self.request(&ClientMessage::GetClusterConfig, SOON, |reply| match reply {
            ServerMessage::ClusterConfig(config) => Answer::Is(config),
            other => other.into(),
        })
        .await
    }

    /// Has the server dial these addresses from now on, and hang up the others. Returns the server's words.
    ///
    /// # Errors
    /// When one is no address, or the server is in no cluster.
    pub async fn set_peers(&mut self, peers: Vec<String>) -> Result<String, ClientError> {
        let change = UpdateClusterConfig { peers: Some(peers), heartbeat_interval_ms: None };
        let request = ClientMessage::UpdateClusterConfig(change);
        self.change_cluster(&request, RequestKind::UpdateClusterConfig, SOON).await
    }

    /// Gives a member another name. Returns the server's words.
    ///
    /// # Errors
    /// When there is no such member, or it cannot be reached.
    pub async fn rename_node(
        &mut self,
        node_id: String,
        name: String,
    ) -> Result<String, ClientError> {
        let request = ClientMessage::RenameNode(RenameNode { node_id, name });
        self.change_cluster(&request, RequestKind::RenameNode, SOON).await
    }

    async fn change_cluster(
        &mut self,
        request: &ClientMessage,
        kind: RequestKind,
        within: Duration,
    ) -> Result<String, ClientError> {
        self.request(request, within, |reply| match reply {
            ServerMessage::ClusterActionAck(ack) if ack.action == kind.name() => match ack.ok {
                true => Answer::Is(ack.message),
                false => Answer::No(ack.message),
            },
            other => other.into(),
        })
        .await
    }
}
