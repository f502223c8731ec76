//! This machine as a member of a workspace cluster, as a part of the server. It starts when the
//! settings, or an invitation taken before, say so; other servers spend nothing on it.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use api::{Cors, Peer};
use axum::{Router, body::Body, extract::Request, routing::get};
use cluster::{Cluster, Parts};
use store::{SqliteStore, WorkspaceStore};
use tokio::task;
use tokio_util::sync::CancellationToken;

use crate::{
    data::mesh_identity,
    listener::Listener,
    settings::{ClusterSettings, Settings},
    telemetry::metrics::Metrics,
    workspace_part::WorkspacePart,
};

/// The most addresses that the other members are told.
const ADDRESSES: usize = 8;
/// A link whose other end takes nothing for this long is cut.
const PATIENCE: Duration = Duration::from_secs(60);

/// This machine as a member, and the port for the others.
pub(crate) struct ClusterPart {
    cluster: Cluster,
    listener: Listener,
}

impl ClusterPart {
    /// Starts if this machine is in a cluster, and has the workspace take part.
    ///
    /// # Errors
    /// When peers are given without a token, the peer port is taken, or stored data cannot be used.
    pub(crate) async fn start(
        settings: &Settings,
        store: &Arc<SqliteStore>,
        workspace: Option<&WorkspacePart>,
        metrics: &Arc<Metrics>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(workspace) = workspace else { return Ok(None) };
        let of_cluster = &settings.cluster;
        let kept: Arc<dyn WorkspaceStore> = Arc::<SqliteStore>::clone(store);
        let is_member = of_cluster.token.is_some() || {
            let kept = Arc::clone(&kept);
            task::spawn_blocking(move || cluster::is_member(&*kept)).await??
        };
        if !is_member {
            anyhow::ensure!(
                of_cluster.peers.is_empty(),
                "peers are given, and no token: give the same --cluster-token to all machines, or \
                 join with an invitation"
            );
            return Ok(None);
        }
        let bound = tokio::net::TcpListener::bind(of_cluster.listen).await;
        let bound = bound.with_context(|| {
            format!("{} cannot be listened on for the cluster's other machines", of_cluster.listen)
        })?;
        let address = bound.local_addr()?;
        let parts = Parts {
            node_id: workspace.node_id(),
            identity: mesh_identity(&settings.data_dir)?,
            store: kept,
        };
        let cluster = Cluster::start(of_settings(of_cluster, address), parts).await?;
        let listener = listener(settings, bound, &cluster, metrics);
        tracing::info!(node = cluster.node_id(), %address, "this machine takes part in a cluster");
        workspace.join(cluster.clone());
        Ok(Some(Self { cluster, listener }))
    }

    /// Takes links of other members until `stop`.
    pub(crate) fn run(self, stop: CancellationToken) -> Cluster {
        tokio::spawn(self.listener.run(stop));
        self.cluster
    }
}

fn of_settings(of_cluster: &ClusterSettings, address: SocketAddr) -> cluster::Settings {
    cluster::Settings {
        token: of_cluster.token.clone(),
        peers: of_cluster.peers.clone(),
        discovery: of_cluster.discovery,
        allow_plain: of_cluster.allow_plain,
        name: of_cluster.name.clone(),
        addresses: reachable(address),
        port: address.port(),
        ..cluster::Settings::default()
    }
}

/// The addresses by which other machines may reach this one.
fn reachable(address: SocketAddr) -> Vec<String> {
    let ips: Vec<IpAddr> = match address.ip().is_unspecified() {
        true => hardware::addresses().into_iter().take(ADDRESSES).collect(),
        false => vec![address.ip()],
    };
    ips.into_iter().map(|ip| SocketAddr::new(ip, address.port()).to_string()).collect()
}

fn listener(
    settings: &Settings,
    bound: tokio::net::TcpListener,
    cluster: &Cluster,
    metrics: &Arc<Metrics>,
) -> Listener {
    let cluster = cluster.clone();
    let peer = get(async move |mut request: Request| {
        let from = Peer::of(request.extensions());
        cluster.accept(&mut request, from).map(Body::from)
    });
    let router = Cors::new(Router::new().route("/peer", peer), settings.local.clone());
    Listener::on(bound, settings.tls.clone(), router, Arc::clone(metrics), PATIENCE)
}
