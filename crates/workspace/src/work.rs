//! The whole workspace: joins the parts, and is the interface to other crates.

use std::{
    fs::DirBuilder,
    net::IpAddr,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use access::{Keys, LocalRules};
use files::{Git, write::Unfinished};
use http::{Request, Response};
use store::{AuditStore, StoreError, WorkspaceStore};
use tokio::task;

use crate::{
    agents::args::ArgRules,
    audit::Audit,
    counts::Counts,
    engines::Engines,
    events::Events,
    host::EngineHost,
    member_tokens::MemberTokens,
    projects::Projects,
    sessions::{EngineStarter, Sessions, TurnFollower},
    settings::{Gateway, GatewaySlot, Settings},
    socket::{
        accept,
        admission::Admission,
        node_id::node_id,
        project_files::ProjectFiles,
        services::{Node, Services, WatchBudget},
    },
    teams::{Outside, Teams},
};

/// The name of the file that lists the files being written.
const UNFINISHED: &str = "unfinished";

/// What the daemon gives to the workspace.
pub struct Parts {
    /// The store of facts.
    pub store: Arc<dyn WorkspaceStore>,
    /// The store of the audit log.
    pub audit: Arc<dyn AuditStore>,
    /// All keys of the server.
    pub keys: Keys,
    /// The rules that say which web pages may connect.
    pub local: LocalRules,
    /// The program that supervises processes, and its arguments; `None`: this program itself.
    pub supervisor: Option<(PathBuf, Vec<String>)>,
}

/// The workspace of this machine.
#[derive(Clone)]
pub struct Workspace(pub(crate) Arc<Whole>);

/// All parts. Each knows only the parts that it was given.
pub(crate) struct Whole {
    pub(crate) host: Arc<EngineHost>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) projects: Arc<Projects>,
    pub(crate) sessions: Sessions,
    pub(crate) teams: Arc<Teams>,
    pub(crate) admission: Arc<Admission>,
    /// Sessions hold the engines weakly, because engines and teams lead back to sessions.
    _engines: Arc<Engines>,
}

/// Why the workspace cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The stored data cannot be read.
    #[error("cannot read what the workspace has kept")]
    Store(#[from] StoreError),
    /// The supervisor of processes does not start.
    #[error("cannot start the supervisor of processes")]
    Supervisor(#[from] process::ProcessError),
    /// The directory cannot be used.
    #[error("cannot use {dir}")]
    Dir {
        /// The directory.
        dir: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl Workspace {
    /// Starts the supervisor, and restores projects, sessions and teams.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(settings: Settings, parts: Parts) -> Result<Self, StartError> {
        prepare(&settings.dir)?;
        let supervisor = supervise(&parts, &settings).await?;
        let store = Arc::clone(&parts.store);
        let (whole, outside) = Whole::new(&Arc::new(settings), parts, supervisor);
        // The order matters: sessions need the projects' environments, and teams need their
        // sessions.
        let projects = Arc::clone(&whole.projects);
        task::spawn_blocking(move || projects.restore()).await.unwrap_or(Ok(()))?;
        whole.sessions.restore(Arc::clone(&store)).await?;
        whole.teams.restore(store, &outside).await?;
        Ok(Self(Arc::new(whole)))
    }

    /// Answers a request for an upgrade with `101`, and serves the connection in a task of its own.
    /// Pages of other origins and improper upgrades are refused.
    pub fn connect<B>(&self, request: &mut Request<B>, from: IpAddr) -> Response<String> {
        accept::connect(&self.0.admission, request, from)
    }

    /// The current figures of the workspace.
    pub fn counts(&self) -> Counts {
        let clients = self.0.admission.connected.load(Ordering::Relaxed);
        Counts { clients, ..self.0.sessions.counts() }
    }

    /// Sets the address at which agents reach this server, once it is known.
    pub fn set_gateway(&self, gateway: Gateway) {
        self.0.host.gateway.set(gateway);
    }

    /// Closes the connection of every client, and accepts no new ones.
    pub async fn disconnect(&self) {
        accept::close(&self.0.admission).await;
    }

    /// Ends every process that sessions started. Returns when all data to be kept is written.
    pub async fn shut_down(&self) {
        let whole = &self.0;
        self.disconnect().await;
        whole.teams.flush().await;
        whole.sessions.shut_down().await;
        whole.host.supervisor.shutdown(whole.host.settings.stop_grace).await;
        let audit = Arc::clone(&whole.audit);
        let _flushed = task::spawn_blocking(move || audit.flush()).await;
    }
}

impl Whole {
    /// Builds the parts from the ground up; each is given what it uses.
    fn new(
        settings: &Arc<Settings>,
        parts: Parts,
        supervisor: process::Supervisor,
    ) -> (Self, Outside) {
        let Parts { store, audit, keys, local, supervisor: _ } = parts;
        let events = Events::default();
        let audit = Arc::new(Audit::new(audit));
        let gateway = GatewaySlot::new(settings.agents.gateway.clone());
        let projects = Arc::new(Projects::new(
            settings.run_as.clone(),
            Arc::clone(&store),
            Arc::clone(&audit),
            events.clone(),
        ));
        let member_tokens = Arc::<MemberTokens>::default();
        let teams = Arc::new(Teams::new(Arc::clone(&member_tokens)));
        let host = Arc::new(EngineHost {
            settings: Arc::clone(settings),
            supervisor,
            keys: keys.clone(),
            projects: Arc::clone(&projects),
            gateway: gateway.clone(),
            member_tokens: Arc::clone(&member_tokens),
        });
        let engines = Arc::new(Engines {
            host: Arc::clone(&host),
            events: events.clone(),
            arg_rules: ArgRules::new(&settings.agents.allowed_args),
        });
        let starter: Arc<dyn EngineStarter> = Arc::<Engines>::clone(&engines);
        let follower: Arc<dyn TurnFollower> = Arc::<Teams>::clone(&teams);
        let (starter, follower) = (Arc::downgrade(&starter), Arc::downgrade(&follower));
        let sessions = Sessions::new(settings, &store, &projects, &events, starter, follower);
        let outside = Outside {
            sessions: sessions.downgrade(),
            events: events.clone(),
            audit: Arc::clone(&audit),
        };
        let services = Services {
            sessions: sessions.clone(),
            projects: Arc::clone(&projects),
            teams: teams.requests(&outside),
            member_tokens,
            audit: Arc::clone(&audit),
            events,
            files: Arc::new(ProjectFiles::new(Arc::clone(&projects), unfinished(&settings.dir))),
            git: Git::default(),
            watches: WatchBudget::default(),
            node: Node { id: node_id(&settings.dir), gateway },
        };
        let admission = Arc::new(Admission::new(settings, &keys, local, services));
        let whole = Self { host, audit, projects, sessions, teams, admission, _engines: engines };
        (whole, outside)
    }
}

/// Creates the directory, which only the daemon's user may access.
fn prepare(dir: &Path) -> Result<(), StartError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| StartError::Dir { dir: dir.to_owned(), source })
}

/// The list of files that are being written. Files left behind by an earlier process are removed in
/// the background, because some directories may lie on machines that are gone.
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
