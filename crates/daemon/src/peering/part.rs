//! The server as a node of the mesh.

use std::{sync::Arc, time::Duration};

use anyhow::Context;
use base::Secret;
use mesh::{Mesh, node::Parts, share::Sharing};
use models::{Library, Sources};
use protocol::via::Marks;
use scheduler::Scheduler;
use seal::PasscodeKey;
use store::UsageStore;
use tokio::{net::TcpListener, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    data::{MODELS, mesh_identity},
    settings::Settings,
};

/// How long the node may take to end its links to peers.
const FAREWELL: Duration = Duration::from_secs(5);

/// The node, which takes part once it is [run](MeshPart::run).
pub(crate) struct MeshPart {
    mesh: Mesh,
    listener: Option<TcpListener>,
}

/// The running node.
pub(crate) struct RunningMesh {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl MeshPart {
    /// Reads the node's key and binds the address of LAN peers. `None` if the mesh is not enabled.
    pub(crate) async fn start(
        settings: &Settings,
        scheduler: &Scheduler,
        usage: Arc<dyn UsageStore>,
        marks: Marks,
    ) -> anyhow::Result<Option<Self>> {
        if !settings.mesh.enabled {
            return Ok(None);
        }
        let node = &settings.mesh.node;
        warn(node);
        let identity = mesh_identity(&settings.data_dir)?;
        let listener = listener(node)?;
        let library = Arc::new(Library::new(sources(node)));
        let psk = psk(node.passcode.clone()).await?;
        let parts = Parts { identity, psk, scheduler: scheduler.clone(), usage, library, marks };
        let mesh = Mesh::new(node.clone(), parts);
        tracing::info!(id = mesh.id().fingerprint(), "this machine takes part in the mesh");
        Ok(Some(Self { mesh, listener }))
    }

    pub(crate) fn mesh(&self) -> Mesh {
        self.mesh.clone()
    }

    pub(crate) fn run(self) -> RunningMesh {
        let stop = CancellationToken::new();
        RunningMesh { task: tokio::spawn(self.mesh.run(stop.clone(), self.listener)), stop }
    }
}

impl RunningMesh {
    /// Ends the node and its links to peers.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        if timeout(FAREWELL, self.task).await.is_err() {
            tracing::warn!("not every peer could be told goodbye in time");
        }
    }
}

fn warn(settings: &mesh::Settings) {
    if settings.share.with == Sharing::Anyone {
        tracing::warn!("OPEN: every peer that reaches this machine may use its models");
    }
    if settings.plain_passcode && settings.passcode.is_some() {
        tracing::warn!(
            "--mesh-plain-passcode: whoever listens when a stock peer is greeted can use the hash of \
             the passcode again"
        );
    }
}

fn listener(settings: &mesh::Settings) -> anyhow::Result<Option<TcpListener>> {
    let Some(listen) = settings.listen else { return Ok(None) };
    let bound = wire::listen(listen);
    bound.map(Some).with_context(|| {
        format!("{listen} (--mesh-listen) cannot be listened on: is another node running there?")
    })
}

async fn psk(passcode: Option<Secret>) -> anyhow::Result<Option<PasscodeKey>> {
    let Some(passcode) = passcode else { return Ok(None) };
    let derived = tokio::task::spawn_blocking(move || PasscodeKey::derive(&passcode)).await;
    derived.map(Some).context("the key of --mesh-passcode could not be made")
}

fn sources(settings: &mesh::Settings) -> Sources {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let sources = home.map(|home| Sources::of_home(&home)).unwrap_or_default();
    let sources = sources.as_said_by(|name| std::env::var_os(name));
    let store = Some(settings.data_dir.join(MODELS));
    Sources { folders: settings.model_dirs.clone(), store, ..sources }
}
