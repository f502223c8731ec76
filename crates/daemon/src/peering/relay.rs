//! The relay at the server's own port.

use std::{collections::HashSet, sync::Arc};

use access::LocalRules;
use axum::{
    Json,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use base::NodeId;
use http::StatusCode;
use mesh_relay::{Admission, MeshRelay, Remember};
use protocol::mesh::relay::relay_host;
use serde_json::json;
use tokio_util::task::TaskTracker;

use super::proofs::Proofs;
use crate::{
    data::{MESH_PROOFS, mesh_identity},
    options::MeshRelayServe,
    settings::Settings,
};

/// The relay, with the rules for web pages.
#[derive(Clone)]
pub(crate) struct Relay {
    relay: MeshRelay,
    local: Arc<LocalRules>,
}

impl Relay {
    /// The relay, unless the settings turn it off: by default it is on for a server on loopback. Its links'
    /// tasks are added to `links`.
    pub(crate) fn of(settings: &Settings, links: &TaskTracker) -> anyhow::Result<Option<Self>> {
        let default = match settings.listen.ip().is_loopback() {
            true => MeshRelayServe::Open,
            false => MeshRelayServe::Off,
        };
        let admission = match settings.mesh.relay_serve.unwrap_or(default) {
            MeshRelayServe::Off => return Ok(None),
            MeshRelayServe::Open => Admission::Open,
            MeshRelayServe::Members => Admission::Members(members(settings)?),
        };
        let accept_unsigned = settings.mesh.accept_unsigned;
        let hosts = settings.mesh.relay_hosts.iter().map(|host| relay_host(host)).collect();
        let rules = mesh_relay::Settings { admission, accept_unsigned, hosts, ..<_>::default() };
        let proofs = Proofs::open(&settings.data_dir.join(MESH_PROOFS))?;
        let local = Arc::new(settings.local.clone());
        Ok(Some(Self::new(rules, Box::new(proofs), local, links)))
    }

    pub(crate) fn new(
        rules: mesh_relay::Settings,
        memory: Box<dyn Remember>,
        local: Arc<LocalRules>,
        links: &TaskTracker,
    ) -> Self {
        let relay = MeshRelay::new(rules, memory).tracked_by(links.clone());
        Self { relay, local }
    }

    /// Answers a node. Pages of other origins are refused: they would learn who is connected.
    pub(crate) fn answer(&self, mut request: Request) -> Response {
        let from = api::Peer::of(request.extensions());
        if !self.local.takes_socket(from, request.uri(), request.headers()) {
            let words = "this relay takes nodes, and no pages of other origins, nor such that were led \
                         here by a name that is not the server's";
            let kind = api::error::Kind::Permission;
            return api::ApiError::new(StatusCode::FORBIDDEN, kind, words).into_response();
        }
        self.relay.connect(&mut request).map(Body::from)
    }

    pub(crate) fn counts(&self) -> mesh_relay::Counts {
        self.relay.counts()
    }

    /// The connected nodes, with shortened ids, which anybody may see.
    pub(crate) fn peers(&self) -> Response {
        let peers = self.relay.peers();
        Json(json!({"count": peers.len(), "peers": peers})).into_response()
    }

    /// Says goodbye to every node.
    pub(crate) fn shut_down(&self) {
        self.relay.shut_down();
    }
}

/// The trusted nodes and this one.
fn members(settings: &Settings) -> anyhow::Result<HashSet<NodeId>> {
    let own = mesh_identity(&settings.data_dir)?.node_id();
    Ok(settings.mesh.trusted.iter().copied().chain([own]).collect())
}
