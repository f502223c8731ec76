//! What stands in for the workspace on systems without one: parts of the same names, of which there is never any.
//!
//! A server there is as one with `--workspace=false`.

/// Stands in for the settings of the workspace.
pub(crate) mod workspace_settings {
    use std::path::Path;

    use anyhow::bail;
    use serde_json::Value;

    use crate::options::WorkspaceOptions;

    /// There are none: `None` in any case.
    #[derive(Debug, Clone)]
    pub enum WorkspaceSettings {}

    /// Refuses a workspace that is asked for by name. Its other settings are not used.
    ///
    /// # Errors
    /// When it is asked for.
    pub(crate) fn settings(
        options: WorkspaceOptions,
        _data_dir: &Path,
    ) -> anyhow::Result<Option<WorkspaceSettings>> {
        if options.enabled == Some(true) {
            bail!(
                "--workspace is set, and {}: leave it out, or run the server on Linux or macOS",
                super::workspace_part::NO_WORKSPACE
            );
        }
        Ok(None)
    }

    /// Their values: there are none.
    pub(crate) fn values(workspace: &WorkspaceSettings) -> Vec<(&'static str, Value)> {
        match *workspace {}
    }
}

/// Stands in for the workspace.
pub(crate) mod workspace_part {
    use std::{net::SocketAddr, sync::Arc, time::Duration};

    use access::Keys;
    use axum::{extract::Request, response::Response};
    use base::Secret;
    use protocol::admin::status::WorkspaceHealth;

    use crate::{
        cluster_models::ClusterModels, settings::Settings, stopping::SessionsFate, stores::Stores,
    };

    /// Why a server has no workspace.
    pub(crate) const NO_WORKSPACE: &str = "there is no workspace on this system";

    /// There is none.
    #[derive(Clone)]
    pub(crate) enum WorkspacePart {}

    /// There are none.
    pub(crate) enum WorkspaceCounts {}

    impl WorkspaceCounts {
        pub(crate) fn live(&self) -> (usize, usize) {
            match *self {}
        }
    }

    impl WorkspacePart {
        pub(crate) fn of(
            _settings: &Settings,
            _administrator: &Secret,
            _keys: &Keys,
            _stores: &Stores,
        ) -> Option<Self> {
            tracing::info!("{NO_WORKSPACE}: no terminals, agents or files are served");
            None
        }

        pub(crate) fn listening(&self, _address: SocketAddr, _tls: bool) {
            match *self {}
        }

        pub(crate) fn set_models(&self, _models: &Arc<ClusterModels>) {
            match *self {}
        }

        pub(crate) async fn answer(&self, _request: Request) -> Response {
            match *self {}
        }

        pub(crate) fn keeps_sessions(&self) -> Duration {
            match *self {}
        }

        pub(crate) fn counts(&self) -> Option<WorkspaceCounts> {
            match *self {}
        }

        pub(crate) fn health(&self) -> WorkspaceHealth {
            match *self {}
        }

        pub(crate) async fn shut_down(&self, _fate: SessionsFate) {
            match *self {}
        }
    }

    /// Appends no metrics.
    pub(crate) fn encode(_text: &mut String, _counts: Option<&WorkspaceCounts>) {}
}

/// Stands in for this machine as a member of a cluster.
pub(crate) mod cluster_part {
    use std::sync::Arc;

    use mesh::Mesh;
    use store::SqliteStore;
    use tokio_util::sync::CancellationToken;

    use crate::{
        settings::Settings,
        telemetry::metrics::Metrics,
        workspace_part::{NO_WORKSPACE, WorkspacePart},
    };

    /// There is none.
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
}

/// Stands in for the models of a cluster's members.
pub(crate) mod cluster_models {
    use std::pin::Pin;

    use access::Keys;
    use api::{
        Api, ApiError,
        elsewhere::{Elsewhere, Way},
    };
    use base::KeyId;

    /// There are none.
    pub(crate) struct ClusterModels(());

    impl ClusterModels {
        pub(crate) fn of(_api: &Api, _keys: &Keys) -> Self {
            Self(())
        }
    }

    impl Elsewhere for ClusterModels {
        fn is_for(&self, _key: &KeyId) -> bool {
            false
        }

        fn find(
            &self,
            _key: &KeyId,
        ) -> Pin<Box<dyn Future<Output = Result<Option<Box<dyn Way>>, ApiError>> + Send>> {
            Box::pin(async { Ok(None) })
        }
    }
}
