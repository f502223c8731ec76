//! The workspace of this machine, as a part of the server.
//!
//! It starts when somebody comes for it, or at once when it has kept sessions: a server that nobody
//! uses for sessions has no second process, and no memory for them.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, OnceLock},
};

use access::{Keys, LocalRules};
use api::Peer;
use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use base::Secret;
use http::StatusCode;
use prometheus_client::{
    encoding::text::encode_registry,
    metrics::{counter::Counter, gauge::Gauge},
    registry::{Registry, Unit},
};
use protocol::admin::status::WorkspaceHealth;
use store::{SqliteStore, StoreError, WorkspaceStore as _};
use tokio::{sync::OnceCell, task};
use workspace::{Counts, Gateway, Parts, StartError, Workspace};

use crate::settings::Settings;

/// What sessions are kept as.
const KEPT: &str = "session";

/// The workspace, running or not yet.
#[derive(Clone)]
pub(crate) struct Working(Arc<Inner>);

struct Inner {
    settings: workspace::Settings,
    store: Arc<SqliteStore>,
    keys: Keys,
    local: LocalRules,
    gateway: OnceLock<Gateway>,
    running: OnceCell<Workspace>,
}

impl Working {
    /// The workspace that the settings want, if they want one. Who has the token of the server's
    /// administrator may do all in it.
    pub(crate) fn of(
        settings: &Settings,
        administrator: &Secret,
        keys: &Keys,
        store: &Arc<SqliteStore>,
    ) -> Option<Self> {
        let administrator = Some(administrator.clone());
        let inner = Inner {
            settings: workspace::Settings { administrator, ..settings.workspace.clone()? },
            store: Arc::clone(store),
            keys: keys.clone(),
            local: settings.local.clone(),
            gateway: OnceLock::new(),
            running: OnceCell::new(),
        };
        Some(Self(Arc::new(inner)))
    }

    /// The server listens here: agents that think with its models find it so. Sessions that were
    /// kept go on.
    pub(crate) fn listening(&self, address: SocketAddr, tls: bool) {
        // It is told once.
        let _again = self.0.gateway.set(Gateway { url: own_url(address, tls) });
        let working = self.clone();
        tokio::spawn(async move {
            if working.has_kept_any().await
                && let Err(error) = working.running().await
            {
                let error = base::error::chain(&error);
                tracing::error!(error, "the workspace does not start");
            }
        });
    }

    /// Answers who comes for the workspace.
    pub(crate) async fn answer(&self, mut request: Request) -> Response {
        let from = Peer::of(request.extensions());
        match self.running().await {
            Ok(workspace) => workspace.connect(&mut request, from).map(Body::from),
            Err(error) => unavailable(&error),
        }
    }

    /// What it is doing and has done, if it runs.
    pub(crate) fn counts(&self) -> Option<Counts> {
        self.0.running.get().map(Workspace::counts)
    }

    /// The same, as `/health` tells it.
    pub(crate) fn health(&self) -> WorkspaceHealth {
        let Counts { clients, sessions, live, .. } = self.counts().unwrap_or_default();
        WorkspaceHealth {
            clients: clients as u64,
            sessions: sessions as u64,
            live_sessions: live as u64,
        }
    }

    /// Ends every session, and returns when all that was to be kept is written.
    pub(crate) async fn shut_down(&self) {
        if let Some(workspace) = self.0.running.get() {
            workspace.shut_down().await;
        }
    }

    /// What has failed is tried again when somebody comes again.
    async fn running(&self) -> Result<&Workspace, StartError> {
        let Inner { settings, store, keys, local, gateway, running } = &*self.0;
        running
            .get_or_try_init(|| async {
                let parts = Parts {
                    store: Arc::<SqliteStore>::clone(store),
                    audit: Arc::<SqliteStore>::clone(store),
                    keys: keys.clone(),
                    local: local.clone(),
                    supervisor: None,
                };
                let workspace = Workspace::start(settings.clone(), parts).await?;
                if let Some(gateway) = gateway.get() {
                    workspace.set_gateway(gateway.clone());
                }
                Ok(workspace)
            })
            .await
    }

    async fn has_kept_any(&self) -> bool {
        let store = Arc::clone(&self.0.store);
        let kept = task::spawn_blocking(move || store.load_facts(KEPT)).await;
        let any = |kept: Result<Vec<_>, StoreError>| kept.is_ok_and(|kept| !kept.is_empty());
        kept.is_ok_and(any)
    }
}

/// This server, as what runs on this machine reaches it.
fn own_url(address: SocketAddr, tls: bool) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::from(Ipv4Addr::LOCALHOST),
        // Where all addresses are listened on, those of IPv4 are, too, unless the system was told
        // otherwise.
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::from(Ipv6Addr::LOCALHOST),
        other => other,
    };
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

fn unavailable(error: &StartError) -> Response {
    let words = base::error::chain(error);
    tracing::error!(error = words, "the workspace does not start");
    let words = format!("the workspace of this server does not start: {words}");
    let kind = api::error::Kind::Server;
    api::ApiError::new(StatusCode::SERVICE_UNAVAILABLE, kind, words).into_response()
}

/// Adds what there is to tell of the workspace to a text of metrics.
pub(crate) fn encode(text: &mut String, counts: Option<&Counts>) {
    let Some(counts) = counts else { return };
    let mut registry = Registry::with_prefix("warren_workspace");
    for (name, help, number) in [
        ("clients", "Clients that are connected", counts.clients),
        ("sessions", "Sessions, those that have ended among them", counts.sessions),
        ("live_sessions", "Sessions that have not ended", counts.live),
    ] {
        let gauge = Gauge::<i64>::default();
        gauge.set(i64::try_from(number).unwrap_or(i64::MAX));
        registry.register(name, help, gauge);
    }
    let help = "Output of all sessions";
    registry.register_with_unit("output", help, Unit::Bytes, counter(counts.output_bytes));
    let help = "Times that a client fell behind and was given a snapshot";
    registry.register("resyncs", help, counter(counts.resyncs));
    // Writing to a string does not fail.
    let _ = encode_registry(text, &registry);
}

fn counter(number: u64) -> Counter {
    let counter = Counter::<u64>::default();
    counter.inc_by(number);
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_here_reaches_a_server_that_listens_everywhere_by_loopback() {
        let url = |address: &str, tls| own_url(address.parse().unwrap(), tls);
        assert_eq!(url("0.0.0.0:9178", false), "http://127.0.0.1:9178");
        assert_eq!(url("[::]:9178", true), "https://[::1]:9178");
        assert_eq!(url("10.0.0.7:1", false), "http://10.0.0.7:1");
    }

    #[test]
    fn what_is_counted_is_told_once_there_is_a_workspace() {
        let mut text = String::new();
        encode(&mut text, None);
        assert_eq!(text, "");
        let counts = Counts { clients: 1, sessions: 2, live: 3, output_bytes: 4, resyncs: 5 };
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
