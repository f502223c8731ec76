//! Stands in for the workspace on systems without one. A server there acts as with `--workspace=false`.

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

/// A workspace. It has no values.
#[derive(Clone)]
pub(crate) enum WorkspacePart {}

/// Counts of a workspace. They have no values.
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
