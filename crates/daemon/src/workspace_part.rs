//! The workspace of this machine, as a part of the server.
//!
//! It starts with its first client; or with the server, if there are stored sessions or the machine is a member of a
//! cluster. Until then, it costs no second process and no memory.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock, PoisonError, RwLock, Weak},
    time::Duration,
};

use access::{Keys, LocalRules};
use api::Client;
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use base::{Live, Secret};
use cluster::Cluster;
use http::StatusCode;
use prometheus_client::{
    encoding::text::encode_registry,
    registry::{Registry, Unit},
};
use protocol::admin::status::WorkspaceHealth;
use store::{AuditStore, SqliteStore, StoreError, WorkspaceStore as _};
use tokio::{sync::OnceCell, task};
use workspace::{Counts, Gateway, Parts, SessionModels, StartError, TurnFollower, Workspace};
use workspace_socket::{ClientSocket, Memberships};
use workspace_teams::Teams;

use crate::{
    cluster_models::ClusterModels,
    running::own_url,
    settings::Settings,
    stopping::SessionsFate,
    stores::Stores,
    telemetry::metrics::{counter, gauge},
};

/// Why a server has no workspace.
pub(crate) const NO_WORKSPACE: &str = "it was turned off with --workspace=false";

/// The kind of the facts by which sessions are stored.
const SESSION_FACTS: &str = "session";

/// The workspace, running or not yet.
#[derive(Clone)]
pub(crate) struct WorkspacePart(Arc<Inner>);

struct Inner {
    settings: workspace::Settings,
    store: Arc<SqliteStore>,
    audit: Arc<dyn AuditStore>,
    keys: Keys,
    local: Live<LocalRules>,
    gateway: OnceLock<Gateway>,
    cluster: RwLock<Option<Cluster>>,
    memberships: OnceLock<Weak<dyn Memberships>>,
    models: OnceLock<Weak<ClusterModels>>,
    running: OnceCell<RunningWorkspace>,
}

/// The workspace with its teams and its clients' socket.
struct RunningWorkspace {
    workspace: Workspace,
    teams: Arc<Teams>,
    socket: ClientSocket,
}

/// The figures of the workspace, for health and metrics.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WorkspaceCounts {
    clients: usize,
    sessions: Counts,
}

impl WorkspaceCounts {
    /// How many terminals and how many agents have not ended.
    pub(crate) fn live(&self) -> (usize, usize) {
        let Counts { live, terminals, .. } = self.sessions;
        (terminals, live.saturating_sub(terminals))
    }
}

impl WorkspacePart {
    /// The workspace, unless the settings turn it off. The server's administrator is the administrator of the
    /// workspace, too.
    pub(crate) fn of(
        settings: &Settings,
        administrator: &Secret,
        keys: &Keys,
        stores: &Stores,
    ) -> Option<Self> {
        let administrator = Some(administrator.clone());
        let inner = Inner {
            settings: workspace::Settings { administrator, ..settings.workspace.clone()? },
            store: Arc::clone(&stores.own),
            audit: Arc::clone(&stores.audit),
            keys: keys.clone(),
            local: settings.local.clone(),
            gateway: OnceLock::new(),
            cluster: RwLock::default(),
            memberships: OnceLock::new(),
            models: OnceLock::new(),
            running: OnceCell::new(),
        };
        Some(Self(Arc::new(inner)))
    }

    /// Learns where the server listens, which agents that use its models have to know. Starts the workspace if there
    /// are stored sessions or the machine is a member of a cluster.
    pub(crate) fn listening(&self, address: SocketAddr, tls: bool) {
        // Called once, so there is no earlier value.
        let _earlier = self.0.gateway.set(Gateway { url: own_url(address, tls) });
        let working = self.clone();
        tokio::spawn(async move {
            let is_member = working.0.cluster().is_some();
            if (is_member || working.has_stored_sessions().await)
                && let Err(error) = working.running().await
            {
                let error = base::error::chain(&error);
                tracing::error!(error, "the workspace does not start");
            }
        });
    }

    /// The id of this machine. Blocks: it reads a small file, and makes it if there is none.
    pub(crate) fn node_id(&self) -> String {
        workspace_socket::node_id(&self.0.settings.dir)
    }

    /// Makes the workspace part of a cluster, whether or not it runs already.
    pub(crate) fn join(&self, cluster: &Cluster) {
        *self.0.cluster.write().unwrap_or_else(PoisonError::into_inner) = Some(cluster.clone());
        if let Some(models) = self.0.models() {
            models.join(cluster);
        }
        if let Some(running) = self.0.running.get() {
            running.socket.join(cluster);
        }
    }

    /// Takes the workspace out of its cluster.
    pub(crate) fn leave(&self) {
        *self.0.cluster.write().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(models) = self.0.models() {
            models.leave();
        }
        if let Some(running) = self.0.running.get() {
            running.socket.leave();
        }
    }

    /// Sets the part that begins and ends memberships for clients. Called once, before the first client.
    pub(crate) fn set_memberships(&self, memberships: Weak<dyn Memberships>) {
        // Called once, so there is no earlier value.
        let _earlier = self.0.memberships.set(memberships);
    }

    /// Sets the part that finds the models of agents. Called once, before the first client.
    pub(crate) fn set_models(&self, models: &Arc<ClusterModels>) {
        // Called once, so there is no earlier value.
        let _earlier = self.0.models.set(Arc::downgrade(models));
    }

    /// Answers a client of the workspace.
    pub(crate) async fn answer(&self, mut request: Request) -> Response {
        let from = Client::of(request.extensions());
        match self.running().await {
            Ok(running) => running.socket.connect(&mut request, from).map(Body::from),
            Err(error) => unavailable(&error),
        }
    }

    /// How long sessions outlive the server.
    pub(crate) fn keeps_sessions(&self) -> Duration {
        self.0.settings.keep_sessions
    }

    /// Its counts, if it runs.
    pub(crate) fn counts(&self) -> Option<WorkspaceCounts> {
        self.0.running.get().map(RunningWorkspace::counts)
    }

    /// Its state for `/health`.
    pub(crate) fn health(&self) -> WorkspaceHealth {
        let WorkspaceCounts { clients, sessions } = self.counts().unwrap_or_default();
        WorkspaceHealth {
            keep_sessions_secs: self.0.settings.keep_sessions.as_secs(),
            clients: clients as u64,
            sessions: sessions.sessions as u64,
            live_sessions: sessions.live as u64,
        }
    }

    /// Ends every session, or leaves the running sessions to the next server. Returns once everything is written.
    pub(crate) async fn shut_down(&self, fate: SessionsFate) {
        if let Some(running) = self.0.running.get() {
            running.shut_down(fate).await;
        }
    }

    /// The running workspace, which is started if necessary. If the start fails, the next client tries it again.
    async fn running(&self) -> Result<&RunningWorkspace, StartError> {
        self.0.running.get_or_try_init(|| RunningWorkspace::start(&self.0)).await
    }

    async fn has_stored_sessions(&self) -> bool {
        let store = Arc::clone(&self.0.store);
        let stored = task::spawn_blocking(move || store.load_facts(SESSION_FACTS)).await;
        let any =
            |stored: Result<Vec<_>, StoreError>| stored.is_ok_and(|stored| !stored.is_empty());
        stored.is_ok_and(any)
    }
}

impl Inner {
    fn models(&self) -> Option<Arc<ClusterModels>> {
        self.models.get().and_then(Weak::upgrade)
    }

    fn cluster(&self) -> Option<Cluster> {
        self.cluster.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl RunningWorkspace {
    async fn start(inner: &Inner) -> Result<Self, StartError> {
        let Inner { settings, store, audit, keys, local, gateway, memberships, .. } = inner;
        let teams = Arc::<Teams>::default();
        let follower: Arc<dyn TurnFollower> = Arc::<Teams>::clone(&teams);
        let parts = Parts {
            store: Arc::<SqliteStore>::clone(store),
            audit: Arc::clone(audit),
            keys: keys.clone(),
            turns: Arc::downgrade(&follower),
            supervisor: None,
        };
        let mut settings = settings.clone();
        // Set before the start: agents that outlived an earlier server go on at once.
        settings.agents.gateway = gateway.get().cloned();
        let workspace = Workspace::start(settings, parts).await?;
        teams.restore(&workspace).await?;
        if let Some(models) = inner.models() {
            let models: Arc<dyn SessionModels> = models;
            workspace.set_models(Arc::downgrade(&models));
        }
        if let Some(gateway) = gateway.get() {
            workspace.set_gateway(gateway.clone());
        }
        let requests = teams.requests(&workspace);
        let socket = ClientSocket::new(&workspace, requests, local.clone());
        if let Some(memberships) = memberships.get() {
            socket.set_memberships(memberships.clone());
        }
        if let Some(cluster) = inner.cluster() {
            socket.join(&cluster);
        }
        Ok(Self { workspace, teams, socket })
    }

    fn counts(&self) -> WorkspaceCounts {
        WorkspaceCounts { clients: self.socket.clients(), sessions: self.workspace.counts() }
    }

    /// Clients are closed first, so that nothing new begins. The teams' records are stored before their sessions end:
    /// a member of a team whose session ends with the server has not ended itself.
    async fn shut_down(&self, fate: SessionsFate) {
        self.socket.close().await;
        self.teams.flush().await;
        match fate {
            SessionsFate::Keep => self.workspace.release().await,
            SessionsFate::End => self.workspace.shut_down().await,
        }
    }
}

fn unavailable(error: &StartError) -> Response {
    let words = base::error::chain(error);
    tracing::error!(error = words, "the workspace does not start");
    let words = format!("the workspace of this server does not start: {words}");
    let kind = api::error::Kind::Server;
    api::ApiError::new(StatusCode::SERVICE_UNAVAILABLE, kind, words).into_response()
}

/// Appends the workspace's metrics.
pub(crate) fn encode(text: &mut String, counts: Option<&WorkspaceCounts>) {
    let Some(WorkspaceCounts { clients, sessions }) = counts else { return };
    let mut registry = Registry::with_prefix("warren_workspace");
    for (name, help, number) in [
        ("clients", "Clients that are connected", *clients),
        ("sessions", "Sessions, those that have ended among them", sessions.sessions),
        ("live_sessions", "Sessions that have not ended", sessions.live),
    ] {
        registry.register(name, help, gauge(number));
    }
    let help = "Output of all sessions";
    registry.register_with_unit("output", help, Unit::Bytes, counter(sessions.output_bytes));
    let help = "Times that a client fell behind and was given a snapshot";
    registry.register("resyncs", help, counter(sessions.resyncs));
    // Writing to a string does not fail.
    let _ = encode_registry(text, &registry);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_once_the_workspace_runs() {
        let mut text = String::new();
        encode(&mut text, None);
        assert_eq!(text, "");
        let sessions = Counts { sessions: 2, live: 3, terminals: 1, output_bytes: 4, resyncs: 5 };
        let counts = WorkspaceCounts { clients: 1, sessions };
        assert_eq!(counts.live(), (1, 2));
        encode(&mut text, Some(&counts));
        for line in [
            "warren_workspace_clients 1",
            "warren_workspace_sessions 2",
            "warren_workspace_live_sessions 3",
            "warren_workspace_output_bytes_total 4",
            "warren_workspace_resyncs_total 5",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
