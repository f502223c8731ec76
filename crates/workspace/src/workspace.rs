//! The workspace of this machine: joins the parts of this crate.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
};

use access::Keys;
use process::{Keep, Supervisor, TakenOver};
use store::{AuditStore, StoreError, WorkspaceStore};
use tokio::task;

use crate::{
    agents::args::ArgRules,
    audit::Audit,
    engines::Engines,
    events::Events,
    host::{EngineHost, SessionModels},
    member_tokens::MemberTokens,
    projects::Projects,
    sessions::{Counts, Dependencies, EngineStarter, Sessions, Survivors, TurnFollower},
    settings::{Gateway, GatewaySlot, NodeSlot, Settings},
};

/// The parts of the server that the workspace uses.
pub struct Parts {
    /// The store of facts.
    pub store: Arc<dyn WorkspaceStore>,
    /// The store of the audit log.
    pub audit: Arc<dyn AuditStore>,
    /// All keys of the server.
    pub keys: Keys,
    /// The teams. Weak, because they use the workspace.
    pub turns: Weak<dyn TurnFollower>,
    /// The program that supervises processes, and its arguments; `None`: this program itself.
    pub supervisor: Option<(PathBuf, Vec<String>)>,
}

/// The workspace of this machine. Clones share all parts.
#[derive(Clone)]
pub struct Workspace {
    /// Its directory and its bounds.
    pub settings: Arc<Settings>,
    /// The store of facts.
    pub store: Arc<dyn WorkspaceStore>,
    /// All keys of the server.
    pub keys: Keys,
    /// The audit log.
    pub audit: Arc<Audit>,
    /// The events for all clients.
    pub events: Events,
    /// The projects.
    pub projects: Arc<Projects>,
    /// The sessions.
    pub sessions: Sessions,
    /// The tokens by which agents prove that they are members of a team.
    pub member_tokens: Arc<MemberTokens>,
    /// The address at which agents reach this server.
    pub gateway: GatewaySlot,
    /// The node id of this machine.
    pub node: NodeSlot,
    pub(crate) host: Arc<EngineHost>,
    /// Keeps the engines alive: sessions hold them weakly, because engines lead back to sessions.
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
    /// Starts the supervisor, and restores projects and sessions.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(settings: Settings, parts: Parts) -> Result<Self, StartError> {
        prepare(&settings.dir)?;
        let (supervisor, survivors) = supervise(&parts, &settings).await?;
        let workspace = Self::new(Arc::new(settings), parts, supervisor);
        // The order matters: sessions need the projects' environments.
        let projects = Arc::clone(&workspace.projects);
        task::spawn_blocking(move || projects.restore()).await.unwrap_or(Ok(()))?;
        workspace.sessions.restore(Arc::clone(&workspace.store), survivors).await?;
        Ok(workspace)
    }

    /// The current figures of the workspace.
    pub fn counts(&self) -> Counts {
        self.sessions.counts()
    }

    /// Sets the address at which agents reach this server, once it is known.
    pub fn set_gateway(&self, gateway: Gateway) {
        self.gateway.set(gateway);
        self.sessions.go_on();
    }

    /// Sets where this server's models are. Called once, before the first session is made.
    pub fn set_models(&self, models: Weak<dyn SessionModels>) {
        let _set_before = self.host.models.set(models);
    }

    /// Leaves every process to the next workspace with the same directory. Returns when all data to be
    /// kept is written. If [`Settings::keep_sessions`] is zero, the processes are ended instead.
    pub async fn release(&self) {
        if self.settings.keep_sessions.is_zero() {
            return self.shut_down().await;
        }
        // Before the supervisor is left, so that no output is read here that the next daemon reads again.
        self.sessions.release().await;
        self.host.supervisor.detach().await;
        let audit = Arc::clone(&self.audit);
        let _flushed = task::spawn_blocking(move || audit.flush()).await;
    }

    /// Ends every process that sessions started. Returns when all data to be kept is written.
    pub async fn shut_down(&self) {
        // Before the supervisor ends, so that the engines report how their sessions end.
        self.sessions.shut_down().await;
        self.host.supervisor.shutdown(self.settings.stop_grace).await;
        let audit = Arc::clone(&self.audit);
        let _flushed = task::spawn_blocking(move || audit.flush()).await;
    }

    /// Makes the parts. Each is given the parts that it uses, which are made before it.
    fn new(settings: Arc<Settings>, parts: Parts, supervisor: Supervisor) -> Self {
        let Parts { store, audit, keys, turns, supervisor: _ } = parts;
        let (audit, events) = (Arc::new(Audit::new(audit)), Events::default());
        let (node, run_as) = (NodeSlot::default(), settings.run_as.clone());
        let (of_projects, announced) = (Arc::clone(&store), events.clone());
        let projects =
            Projects::new(run_as, of_projects, Arc::clone(&audit), announced, node.clone());
        let host = Arc::new(EngineHost {
            settings: Arc::clone(&settings),
            supervisor,
            keys: keys.clone(),
            projects: Arc::new(projects),
            gateway: GatewaySlot::new(settings.agents.gateway.clone()),
            models: OnceLock::new(),
            member_tokens: Arc::default(),
        });
        let engines = Arc::new(Engines {
            host: Arc::clone(&host),
            events: events.clone(),
            arg_rules: ArgRules::new(&settings.agents.allowed_args),
        });
        Self {
            sessions: sessions(&engines, &store, turns),
            settings,
            store,
            keys,
            audit,
            events,
            projects: Arc::clone(&host.projects),
            member_tokens: Arc::clone(&host.member_tokens),
            gateway: host.gateway.clone(),
            node,
            host,
            _engines: engines,
        }
    }
}

/// The sessions, which hold the engines weakly.
fn sessions(
    engines: &Arc<Engines>,
    store: &Arc<dyn WorkspaceStore>,
    turns: Weak<dyn TurnFollower>,
) -> Sessions {
    let EngineHost { settings, projects, member_tokens, .. } = &*engines.host;
    let starter: Arc<dyn EngineStarter> = Arc::<Engines>::clone(engines);
    let dependencies = Dependencies {
        store: Arc::clone(store),
        projects: Arc::clone(projects),
        events: engines.events.clone(),
        member_tokens: Arc::clone(member_tokens),
        engines: Arc::downgrade(&starter),
        turns,
    };
    Sessions::new(settings, dependencies)
}

/// Creates the directory, which only the daemon's user may access.
fn prepare(dir: &Path) -> Result<(), StartError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|source| StartError::Dir { dir: dir.to_owned(), source })
}

/// Takes over the supervisor of an earlier daemon with its processes, or starts one.
async fn supervise(
    parts: &Parts,
    settings: &Settings,
) -> Result<(Supervisor, Survivors), StartError> {
    let max_children = u32::try_from(settings.max_sessions).unwrap_or(u32::MAX);
    let limits = process::Limits { max_children, ..process::Limits::default() };
    let (dir, span) = (settings.dir.clone(), settings.keep_sessions);
    let keep = task::spawn_blocking(move || Keep::new(&dir, span)).await;
    let keep = keep.map_err(io::Error::other).flatten();
    let keep = keep.map_err(|source| StartError::Dir { dir: settings.dir.clone(), source })?;
    let survivors = match Supervisor::take_over(&keep, limits).await {
        Ok(TakenOver::Yes(supervisor, held)) => {
            tracing::info!(sessions = held.len(), "took over what outlived the earlier server");
            return Ok((supervisor, Survivors::new(held)));
        }
        Ok(TakenOver::Nothing) => Survivors::default(),
        Ok(TakenOver::OtherVersion) => {
            tracing::warn!("terminals and agents of another version of Warren have ended");
            Survivors::of_other_version()
        }
        // A server without its earlier sessions is better than none.
        Err(error) => {
            tracing::error!(error = base::error::chain(&error), "nothing is taken over");
            Survivors::default()
        }
    };
    let keep = Some(&keep).filter(|_| !span.is_zero());
    Ok((start(parts, limits, keep).await?, survivors))
}

async fn start(
    parts: &Parts,
    limits: process::Limits,
    keep: Option<&Keep>,
) -> Result<Supervisor, process::ProcessError> {
    let Some((program, args)) = &parts.supervisor else {
        return Supervisor::start_ourselves_keeping(limits, keep).await;
    };
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Supervisor::start_keeping(program, &args, limits, keep).await
}
