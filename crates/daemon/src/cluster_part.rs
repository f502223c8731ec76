//! This machine as a member of a workspace cluster, as a part of the server. It starts with the server if the
//! settings say so or the machine has joined before. Otherwise it starts when a client invites another machine or
//! joins a cluster. Until then it costs nothing.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Weak},
    time::Duration,
};

use anyhow::Context;
use api::{Client, Cors};
use axum::{Router, body::Body, extract::Request, routing::get};
use base::{Live, NodeId, Secret};
use bytes::Bytes;
use cluster::{Cluster, MeshWay, Parts, Sending};
use futures_util::future::BoxFuture;
use mesh::{Mesh, parcels::Receiver};
use store::{SqliteStore, WorkspaceStore};
use tokio::{net::TcpListener, sync::Mutex, task};
use tokio_util::sync::{CancellationToken, DropGuard};
use workspace_socket::Memberships;

use crate::{
    data::mesh_identity, listener::Listener, settings::Settings, telemetry::metrics::Metrics,
    workspace_part::WorkspacePart,
};

/// The most addresses that are announced to the other members.
const ADDRESSES: usize = 8;
/// A link is cut if its other end takes no bytes for this long.
const PATIENCE: Duration = Duration::from_secs(60);
/// The least length of a token, in bytes. A shorter one can be guessed by anybody who sees a link begin.
const SAFE_TOKEN: usize = 16;

/// This machine as a member, once it is one, and the port for the other members.
#[derive(Clone)]
pub(crate) struct ClusterPart(Arc<Inner>);

struct Inner {
    settings: Settings,
    store: Arc<SqliteStore>,
    workspace: WorkspacePart,
    metrics: Arc<Metrics>,
    mesh: Option<Mesh>,
    /// Cancelled when the server's ports stop taking new connections.
    closing: CancellationToken,
    /// The membership, if there is one. Locked while a membership begins or ends.
    present: Mutex<Option<Present>>,
}

struct Present {
    cluster: Cluster,
    /// Ends the listener.
    _listening: DropGuard,
    /// Passes on what the mesh receives for the cluster, until this is dropped.
    _from_peers: Option<Arc<FromPeers>>,
}

impl ClusterPart {
    /// Starts the membership at once if this machine is in a cluster, and otherwise once a client invites or joins.
    /// `None` without a workspace.
    ///
    /// # Errors
    /// When peers are given without a token, the peer port is taken, or stored data cannot be used.
    pub(crate) async fn start(
        settings: &Settings,
        store: &Arc<SqliteStore>,
        workspace: Option<&WorkspacePart>,
        metrics: &Arc<Metrics>,
        mesh: Option<Mesh>,
        closing: CancellationToken,
    ) -> anyhow::Result<Option<Self>> {
        let Some(workspace) = workspace else { return Ok(None) };
        let part = Self(Arc::new(Inner {
            settings: settings.clone(),
            store: Arc::clone(store),
            workspace: workspace.clone(),
            metrics: Arc::clone(metrics),
            mesh,
            closing,
            present: Mutex::new(None),
        }));
        if let Some(words) = token_warning(settings.cluster.member.token.as_ref()) {
            tracing::warn!("{words}");
        }
        if part.is_member().await? {
            let present = part.open().await?;
            workspace.join(&present.cluster);
            *part.0.present.lock().await = Some(present);
        } else {
            anyhow::ensure!(
                settings.cluster.member.peers.is_empty(),
                "peers are given, and no token: give the same --cluster-token to all machines, or \
                 join with an invitation"
            );
        }
        let memberships: Arc<dyn Memberships> = Arc::<Inner>::clone(&part.0);
        workspace.set_memberships(Arc::downgrade(&memberships));
        Ok(Some(part))
    }

    async fn is_member(&self) -> anyhow::Result<bool> {
        let store = self.0.store();
        let is_stored = task::spawn_blocking(move || cluster::is_member(&*store)).await??;
        Ok(self.0.settings.cluster.member.token.is_some() || is_stored)
    }

    async fn open(&self) -> anyhow::Result<Present> {
        self.0.open().await
    }

    /// Ends all links. The membership stays.
    pub(crate) async fn shut_down(&self) {
        if let Some(present) = &*self.0.present.lock().await {
            present.cluster.shut_down();
        }
    }
}

impl Inner {
    fn store(&self) -> Arc<dyn WorkspaceStore> {
        Arc::<SqliteStore>::clone(&self.store)
    }

    /// Opens the peer port, and starts the cluster from what is stored of it.
    async fn open(&self) -> anyhow::Result<Present> {
        let of_cluster = &self.settings.cluster;
        let bound = wire::listen(of_cluster.listen);
        let bound = bound.with_context(|| {
            format!("{} cannot be listened on for the cluster's other machines", of_cluster.listen)
        })?;
        let address = bound.local_addr()?;
        let parts = Parts {
            node_id: self.workspace.node_id(),
            identity: mesh_identity(&self.settings.data_dir)?,
            store: self.store(),
        };
        let (member, port) = (of_cluster.member.clone(), address.port());
        let member = cluster::Settings { addresses: reachable(address), port, ..member };
        let cluster = Cluster::start(member, parts).await?;
        let listener = listener(&self.settings, bound, &cluster, &self.metrics);
        let listening = self.closing.child_token();
        tokio::spawn(listener.run(listening.clone()));
        tracing::info!(node = cluster.node_id(), %address, "the port for a cluster's members is open");
        let from_peers = self.mesh.as_ref().map(|mesh| open_to_mesh(mesh, &cluster));
        let listening = listening.drop_guard();
        Ok(Present { cluster, _listening: listening, _from_peers: from_peers })
    }

    async fn begin(&self) -> anyhow::Result<Cluster> {
        let mut present = self.present.lock().await;
        if let Some(present) = &*present {
            return Ok(present.cluster.clone());
        }
        let new = self.open().await?;
        let cluster = new.cluster.clone();
        self.workspace.join(&cluster);
        *present = Some(new);
        Ok(cluster)
    }

    /// Joins a cluster by an invitation. The workspace takes part only once the inviting member has agreed.
    async fn join(&self, code: &str) -> anyhow::Result<String> {
        let mut present = self.present.lock().await;
        if let Some(present) = &*present {
            return Ok(present.cluster.join(code).await?);
        }
        anyhow::ensure!(
            self.settings.cluster.member.token.is_none(),
            "this machine's settings hold the token of a cluster: take --cluster-token and --peer out \
             of them, start the server again, and run the same line"
        );
        let new = self.open().await?;
        match new.cluster.join(code).await {
            Ok(joined) => {
                self.workspace.join(&new.cluster);
                *present = Some(new);
                Ok(joined)
            }
            Err(error) => {
                new.cluster.forget_all().await?;
                Err(error.into())
            }
        }
    }

    async fn leave(&self) -> anyhow::Result<String> {
        let mut present = self.present.lock().await;
        let Some(Present { cluster, .. }) = &*present else {
            anyhow::bail!("this machine is in no cluster");
        };
        self.workspace.leave();
        // If that fails, it is still a member, and can try again.
        cluster.leave().await.inspect_err(|_| self.workspace.join(cluster))?;
        // This also ends the listener.
        *present = None;
        let words = "this machine has left the cluster; its sessions go on";
        Ok(match self.settings.cluster.member.token {
            None => words.to_owned(),
            Some(_) => format!(
                "{words}. Take --cluster-token and --peer out of its settings and start it \
                 again, before it joins another"
            ),
        })
    }
}

impl Memberships for Inner {
    fn begin(&self) -> BoxFuture<'_, Result<Cluster, String>> {
        Box::pin(async { self.begin().await.map_err(|error| words(&error)) })
    }

    fn join<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async { self.join(code).await.map_err(|error| words(&error)) })
    }

    fn leave(&self) -> BoxFuture<'_, Result<String, String>> {
        Box::pin(async { self.leave().await.map_err(|error| words(&error)) })
    }
}

/// A warning about the token of a cluster, if it can be guessed.
fn token_warning(token: Option<&Secret>) -> Option<String> {
    let len = token?.expose().trim().len();
    (len < SAFE_TOKEN).then(|| {
        format!(
            "the cluster token has only {len} characters, and a stranger who reaches the peer port may guess \
             it: give all machines one of {SAFE_TOKEN} or more, as `openssl rand -hex 16` makes, or \
             none, and use `warren cluster invite`"
        )
    })
}

fn words(error: &anyhow::Error) -> String {
    format!("{error:#}")
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
    bound: TcpListener,
    cluster: &Cluster,
    metrics: &Arc<Metrics>,
) -> Listener {
    let cluster = cluster.clone();
    let peer = get(async move |mut request: Request| {
        let from = Client::of(request.extensions());
        cluster.accept(&mut request, from).map(Body::from)
    });
    let router = Cors::new(Router::new().route("/peer", peer), settings.local.clone());
    Listener::on(bound, settings.tls.clone(), router, Arc::clone(metrics), Live::new(PATIENCE))
}

/// The mesh as a way between members that cannot connect to each other: from the cluster to the mesh.
struct ToPeers(Mesh);

impl MeshWay for ToPeers {
    fn leads_to(&self, key: NodeId) -> bool {
        self.0.knows(key)
    }

    fn send(&self, key: NodeId, bytes: Bytes) -> Sending<'_> {
        Box::pin(async move {
            let sent = self.0.send(key, &bytes).await;
            sent.map_err(|error| base::error::chain(&error))
        })
    }
}

/// The way from the mesh to the cluster, until this is dropped.
struct FromPeers(Cluster);

impl Receiver for FromPeers {
    fn received(&self, from: NodeId, bytes: Bytes) {
        self.0.received_over_mesh(from, bytes);
    }

    fn lost(&self, peer: NodeId) {
        self.0.mesh_lost(peer);
    }
}

/// Lets the cluster use the mesh, until the result is dropped.
fn open_to_mesh(mesh: &Mesh, cluster: &Cluster) -> Arc<FromPeers> {
    cluster.use_mesh(Arc::new(ToPeers(mesh.clone())));
    let from = Arc::new(FromPeers(cluster.clone()));
    let receiver: Weak<FromPeers> = Arc::downgrade(&from);
    mesh.set_receiver(receiver);
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_can_be_guessed_is_warned_of() {
        let warning = |token: &str| token_warning(Some(&token.into()));
        assert!(warning("rabbit").is_some_and(|words| words.contains("only 6 characters")));
        assert_eq!(warning("5f4dcc3b5aa765d6"), None);
        assert_eq!(token_warning(None), None);
    }
}
