//! Stands in for the member of a cluster on systems without a workspace.

use std::sync::Arc;

use mesh::Mesh;
use store::SqliteStore;
use tokio_util::sync::CancellationToken;

use crate::{
    settings::Settings,
    telemetry::metrics::Metrics,
    workspace_part::{NO_WORKSPACE, WorkspacePart},
};

/// A member of a cluster. It has no values.
pub(crate) enum ClusterPart {}

impl ClusterPart {
    pub(crate) async fn start(
        settings: &Settings,
        _store: &Arc<SqliteStore>,
        _workspace: Option<&WorkspacePart>,
        _metrics: &Arc<Metrics>,
        _mesh: Option<Mesh>,
        _closing: CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let member = &settings.cluster.member;
        anyhow::ensure!(
            member.token.is_none() && member.peers.is_empty(),
            "a cluster joins workspaces, and {NO_WORKSPACE}: leave --cluster-token and --peer out"
        );
        Ok(None)
    }

    pub(crate) async fn shut_down(&self) {
        match *self {}
    }
}
