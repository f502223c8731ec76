//! The whole: parts that know each other, and the way in.

use std::{
    fs::DirBuilder,
    net::IpAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use access::{Keys, LocalRules};
use files::write::Unfinished;
use http::{Request, Response};
use store::{AuditStore, StoreError, WorkspaceStore};
use tokio::task;

use crate::{
    Gateway,
    agents::Agents,
    audit::Audit,
    events::Events,
    projects::Projects,
    sessions::Sessions,
    settings::Settings,
    socket::{self, Door},
    teams::Teams,
};

/// The file in which files that are being written are noted.
const UNFINISHED: &str = "unfinished";

/// What the workspace is given.
pub struct Parts {
    /// Where facts are kept.
    pub store: Arc<dyn WorkspaceStore>,
    /// Where it is kept who did what.
    pub audit: Arc<dyn AuditStore>,
    /// The keys there are.
    pub keys: Keys,
    /// Which pages may connect.
    pub local: LocalRules,
    /// The program that supervises processes, and its arguments; `None`: this program's own.
    pub supervisor: Option<(PathBuf, Vec<String>)>,
}

/// The workspace of this machine.
#[derive(Clone)]
pub struct Workspace(pub(crate) Arc<Shared>);

/// What all parts of the workspace share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) store: Arc<dyn WorkspaceStore>,
    pub(crate) keys: Keys,
    pub(crate) local: LocalRules,
    pub(crate) supervisor: process::Supervisor,
    pub(crate) events: Events,
    pub(crate) audit: Audit,
    pub(crate) projects: Projects,
    pub(crate) sessions: Sessions,
    pub(crate) agents: Agents,
    pub(crate) teams: Teams,
    pub(crate) door: Door,
    /// The list of files that are being written; `None` if it cannot be kept.
    pub(crate) unfinished: Option<Arc<Unfinished>>,
    /// Connections of clients.
    pub(crate) clients: AtomicUsize,
    gateway: Mutex<Option<Gateway>>,
}

/// Why the workspace cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What was kept cannot be read.
    #[error("cannot read what the workspace has kept")]
    Store(#[from] StoreError),
    /// The supervisor of processes does not start.
    #[error("cannot start the supervisor of processes")]
    Supervisor(#[from] process::ProcessError),
    /// The directory cannot be used.
    #[error("cannot use {dir}")]
    Dir {
        /// Which one.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// What health and metrics show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections of clients.
    pub clients: usize,
    /// Sessions, those that have ended among them.
    pub sessions: usize,
    /// Sessions with a process.
    pub live: usize,
    /// Bytes of output since the start.
    pub output_bytes: u64,
    /// Times that a client fell behind and was given a snapshot.
    pub resyncs: u64,
}

impl Workspace {
    /// Starts the supervisor, and finds what was kept.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(settings: Settings, parts: Parts) -> Result<Self, StartError> {
        prepare(&settings.dir)?;
        let supervisor = supervise(&parts, &settings).await?;
        let shared = Shared::new(settings, parts, supervisor);
        shared.restore().await?;
        Ok(Self(shared))
    }

    /// Answers a request for an upgrade: `101`, and a link of its own task. Pages of other origins,
    /// and what is no proper upgrade, are refused.
    pub fn connect<B>(&self, request: &mut Request<B>, from: IpAddr) -> Response<String> {
        socket::connect(&self.0, request, from)
    }

    /// What it is doing and has done.
    pub fn counts(&self) -> Counts {
        let clients = self.0.clients.load(Ordering::Relaxed);
        Counts { clients, ..self.0.sessions.counts() }
    }

    /// Tells agents where this server is, once that is known.
    pub fn set_gateway(&self, gateway: Gateway) {
        *self.0.gateway.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
    }

    /// Ends every process, and returns when all that was to be kept is written.
    pub async fn shut_down(&self) {
        self.disconnect().await;
        self.0.teams.flush().await;
        self.0.sessions.shut_down().await;
        self.0.supervisor.shutdown(self.0.settings.stop_grace).await;
        let shared = Arc::clone(&self.0);
        let _flushed = task::spawn_blocking(move || shared.audit.flush()).await;
    }
}

impl Shared {
    fn new(settings: Settings, parts: Parts, supervisor: process::Supervisor) -> Arc<Self> {
        let events = Events::default();
        Arc::new_cyclic(|shared| Self {
            sessions: Sessions::new(&settings, &parts.store, &events, shared.clone()),
            gateway: Mutex::new(settings.agents.gateway.clone()),
            projects: Projects::new(settings.run_as.clone()),
            agents: Agents::new(&settings.agents),
            teams: Teams::default(),
            door: Door::new(&settings, &parts.keys),
            audit: Audit::new(parts.audit),
            unfinished: unfinished(&settings.dir),
            clients: AtomicUsize::new(0),
            store: parts.store,
            keys: parts.keys,
            local: parts.local,
            settings,
            supervisor,
            events,
        })
    }

    async fn restore(self: &Arc<Self>) -> Result<(), StartError> {
        let shared = Arc::clone(self);
        let projects = task::spawn_blocking(move || shared.projects.restore(&*shared.store));
        projects.await.unwrap_or(Ok(()))?;
        self.sessions.restore(self).await?;
        Ok(self.teams.restore(self).await?)
    }

    /// This server, as agents reach it, if that is known.
    pub(crate) fn gateway(&self) -> Option<Gateway> {
        self.gateway.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes the directory, for nobody else to look into.
fn prepare(dir: &Path) -> Result<(), StartError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| StartError::Dir { dir: dir.to_owned(), source })
}

/// The list of files that are being written. Files left behind by an earlier process are removed in the
/// background, because some directories may lie on machines that are gone.
fn unfinished(dir: &Path) -> Option<Arc<Unfinished>> {
    let opened = Unfinished::open(&dir.join(UNFINISHED));
    let opened = opened.inspect_err(|error| {
        tracing::warn!(%error, "files that are being written cannot be noted: a server that is \
            killed leaves them behind");
    });
    let (unfinished, left) = opened.ok()?;
    let unfinished = Arc::new(unfinished);
    if !left.is_empty() {
        let list = Arc::clone(&unfinished);
        drop(task::spawn_blocking(move || {
            let removed = list.remove(left);
            tracing::info!(removed, "files that were being written when the server was killed");
        }));
    }
    Some(unfinished)
}

async fn supervise(
    parts: &Parts,
    settings: &Settings,
) -> Result<process::Supervisor, process::ProcessError> {
    let max_children = u32::try_from(settings.max_sessions).unwrap_or(u32::MAX);
    let limits = process::Limits { max_children, ..process::Limits::default() };
    let Some((program, args)) = &parts.supervisor else {
        return process::Supervisor::start_ourselves(limits).await;
    };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    process::Supervisor::start_with(program, &args, limits).await
}
