//! The machines of the workspace.

use protocol::workspace::{ClientMessage, ClusterStatus, ServerMessage};

use super::{answer::Answer, connection::Workspace, sessions::SOON};
use crate::error::ClientError;

impl Workspace {
    /// The machine that is asked, and the others of its cluster.
    ///
    /// # Errors
    /// As [`Workspace::request`].
    pub async fn cluster_status(&mut self) -> Result<ClusterStatus, ClientError> {
        self.request(&ClientMessage::ClusterStatus, SOON, |reply| match reply {
            ServerMessage::ClusterStatus(status) => Answer::Is(status.cluster),
            other => other.into(),
        })
        .await
    }
}
