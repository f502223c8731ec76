//! A mesh relay in a process of its own: `warren mesh relay`.

use std::{collections::HashSet, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use access::LocalRules;
use api::Cors;
use axum::{
    Json, Router,
    extract::Request,
    response::{IntoResponse, Response},
    routing::get,
};
use base::{Live, NodeId};
use http::{HeaderValue, StatusCode, header};
use mesh_relay::{Admission, InMemory, Remember};
use protocol::mesh::relay::relay_host;
use serde_json::json;
use tokio::time::timeout;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Relay, metrics, proofs::Proofs};
use crate::{
    VERSION, listener::Listener, routes::OPENMETRICS, settings::tls, sockets,
    telemetry::metrics::Metrics,
};

/// How long a client may read nothing while an answer waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long nodes may take to close their links at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How a relay treats its nodes.
#[derive(Debug, Clone)]
pub struct RelayOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// The only nodes that are admitted; empty: all.
    pub members: Vec<NodeId>,
    /// Whether nodes that sign nothing are admitted.
    pub accept_unsigned: bool,
    /// The names by which nodes dial it; empty: any.
    pub hosts: Vec<String>,
    /// The certificate chain and its key, PEM.
    pub tls: (Option<PathBuf>, Option<PathBuf>),
    /// The file of the nodes that have answered a challenge; `None`: they are kept in memory.
    pub proofs: Option<PathBuf>,
}

/// A relay that is bound, and serves once it is [`RelayServer::run`].
pub struct RelayServer {
    relay: Relay,
    listener: Listener,
    links: TaskTracker,
    tls: bool,
}

impl RelayServer {
    /// Binds the address.
    ///
    /// # Errors
    /// When the address is taken, or a file cannot be used; the text says what to do.
    pub async fn start(options: RelayOptions) -> anyhow::Result<Self> {
        let tls = tls(options.tls.0.as_deref(), options.tls.1.as_deref())?;
        let (listen, secure) = (options.listen, tls.is_some());
        let links = TaskTracker::new();
        let local = Live::<LocalRules>::default();
        let memory = memory(options.proofs.as_ref())?;
        let relay = Relay::new(rules(options), memory, local, &links);
        let (metrics, router) = (Arc::new(Metrics::new()), router(&relay));
        let router = Cors::new(router, Live::<LocalRules>::default());
        let (tls, patience) = (tls.map(Live::new), Live::new(PATIENCE));
        let listener = Listener::bind(listen, tls, router, metrics, patience)?;
        Ok(Self { relay, listener, links, tls: secure })
    }

    /// Its URL, as nodes of this machine dial it.
    ///
    /// # Errors
    /// When the socket's address cannot be read.
    pub fn url(&self) -> std::io::Result<String> {
        let scheme = if self.tls { "wss" } else { "ws" };
        Ok(format!("{scheme}://{}", self.listener.address()?))
    }

    /// Serves until `stop`. Then tells every node that the relay ends, and waits a few seconds for their links to
    /// close.
    pub async fn run(self, stop: CancellationToken) {
        let connections = tokio::spawn(self.listener.run(stop.clone()));
        stop.cancelled().await;
        let connections = connections.await;
        self.relay.shut_down();
        self.links.close();
        let gone = async {
            self.links.wait().await;
            if let Ok(connections) = connections {
                connections.wait().await;
            }
        };
        if timeout(FAREWELL, gone).await.is_err() {
            tracing::warn!("not every node could be told goodbye in time");
        }
    }
}

fn rules(options: RelayOptions) -> mesh_relay::Settings {
    let members: HashSet<NodeId> = options.members.into_iter().collect();
    let admission = match members.is_empty() {
        true => Admission::Open,
        false => Admission::Members(members),
    };
    mesh_relay::Settings {
        admission,
        accept_unsigned: options.accept_unsigned,
        hosts: options.hosts.iter().map(|host| relay_host(host)).collect(),
        ..mesh_relay::Settings::default()
    }
}

fn memory(proofs: Option<&PathBuf>) -> anyhow::Result<Box<dyn Remember>> {
    match proofs {
        Some(path) => Ok(Box::new(Proofs::open(path)?)),
        None => Ok(Box::new(InMemory::default())),
    }
}

fn router(relay: &Relay) -> Router {
    let [knocked, counted, shown, alive] = [(); 4].map(|()| relay.clone());
    let root = relay.clone();
    Router::new()
        .route(sockets::PATH, get(async move |request: Request| knocked.answer(request)))
        // Stock nodes dial the configured URL as it is, often without a path.
        .route("/", get(async move |request: Request| root.answer(request)))
        .route("/peers", get(async move |request: Request| shown.peers(&request)))
        .route("/health", get(async move || health(&alive)))
        .route("/metrics", get(async move || metrics(&counted)))
        .fallback(async || (StatusCode::NOT_FOUND, "this is a relay of the mesh: dial /ws?node=ID"))
}

fn health(relay: &Relay) -> Response {
    let nodes = relay.counts().registered;
    Json(json!({"status": "ok", "ok": true, "version": VERSION, "peers": nodes})).into_response()
}

fn metrics(relay: &Relay) -> Response {
    let mut text = String::new();
    metrics::encode(&mut text, None, Some(&relay.counts()));
    text.push_str("# EOF\n");
    ([(header::CONTENT_TYPE, HeaderValue::from_static(OPENMETRICS))], text).into_response()
}
