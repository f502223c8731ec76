//! The mesh relay at the server's own port.

use std::collections::HashSet;

use access::LocalRules;
use axum::{
    Json,
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use base::{Live, NodeId};
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

/// The mesh relay, with the rules for its requests.
#[derive(Clone)]
pub(crate) struct Relay {
    relay: MeshRelay,
    rules: Live<LocalRules>,
    /// Whether only local requests are served.
    local_only: bool,
}

impl Relay {
    /// The mesh relay, unless the settings turn it off. By default a server on loopback serves local requests only:
    /// through a proxy, strangers can reach it, too. The tasks of its links are added to `links`.
    pub(crate) fn of(settings: &Settings, links: &TaskTracker) -> anyhow::Result<Option<Self>> {
        let default = match settings.listen.ip().is_loopback() {
            true => MeshRelayServe::Local,
            false => MeshRelayServe::Off,
        };
        let serve = settings.mesh.relay_serve.unwrap_or(default);
        let admission = match serve {
            MeshRelayServe::Off => return Ok(None),
            MeshRelayServe::Local | MeshRelayServe::Open => Admission::Open,
            MeshRelayServe::Members => Admission::Members(members(settings)?),
        };
        let accept_unsigned = settings.mesh.accept_unsigned;
        let hosts = settings.mesh.relay_hosts.iter().map(|host| relay_host(host)).collect();
        let rules = mesh_relay::Settings { admission, accept_unsigned, hosts, ..<_>::default() };
        let proofs = Proofs::open(&settings.data_dir.join(MESH_PROOFS))?;
        let relay = Self::new(rules, Box::new(proofs), settings.local.clone(), links);
        Ok(Some(Self { local_only: serve == MeshRelayServe::Local, ..relay }))
    }

    /// A mesh relay for requests from anywhere.
    pub(crate) fn new(
        settings: mesh_relay::Settings,
        memory: Box<dyn Remember>,
        rules: Live<LocalRules>,
        links: &TaskTracker,
    ) -> Self {
        let relay = MeshRelay::new(settings, memory).tracked_by(links.clone());
        Self { relay, rules, local_only: false }
    }

    /// Answers a node. Pages of other origins are refused: they would learn who is connected.
    pub(crate) fn answer(&self, mut request: Request) -> Response {
        let from = api::Peer::of(request.extensions());
        if !self.serves(&request) {
            return not_local();
        }
        if !self.rules.get().takes_socket(from, request.uri(), request.headers()) {
            return forbidden(
                "this relay takes nodes, and no pages of other origins, nor such that were led here by a \
                 name that is not the server's",
            );
        }
        self.relay.connect(&mut request).map(Body::from)
    }

    pub(crate) fn counts(&self) -> mesh_relay::Counts {
        self.relay.counts()
    }

    /// The connected nodes, with shortened ids, for everybody whom the relay serves.
    pub(crate) fn peers(&self, request: &Request) -> Response {
        if !self.serves(request) {
            return not_local();
        }
        let peers = self.relay.peers();
        Json(json!({"count": peers.len(), "peers": peers})).into_response()
    }

    /// Ends the links to all nodes.
    pub(crate) fn shut_down(&self) {
        self.relay.shut_down();
    }

    fn serves(&self, request: &Request) -> bool {
        let from = api::Peer::of(request.extensions());
        !self.local_only || self.rules.get().is_local(from, request.uri(), request.headers())
    }
}

fn not_local() -> Response {
    forbidden(
        "this relay serves nodes of its own machine only: start the server with --mesh-relay-serve open, \
         or members, to serve others",
    )
}

fn forbidden(words: &'static str) -> Response {
    api::ApiError::new(StatusCode::FORBIDDEN, api::error::Kind::Permission, words).into_response()
}

/// The trusted nodes and this one.
fn members(settings: &Settings) -> anyhow::Result<HashSet<NodeId>> {
    let own = mesh_identity(&settings.data_dir)?.node_id();
    Ok(settings.mesh.node.trusted.iter().copied().chain([own]).collect())
}
