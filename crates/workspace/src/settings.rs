//! Where the workspace keeps things, and its bounds.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base::Secret;
use session::terminal::viewer::PATIENCE;

/// The settings of the workspace.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where histories are kept, and private files of agents.
    pub dir: PathBuf,
    /// The token of administrators of the workspace, if there is one.
    pub token: Option<Secret>,
    /// The token of the server's own administrator, which is one here, too.
    pub administrator: Option<Secret>,
    /// Output of a session that is kept in memory, in bytes.
    pub log_bytes: usize,
    /// Output of a session that is kept on the disk, in bytes.
    pub history_bytes: u64,
    /// Sessions at most, those that have ended among them.
    pub max_sessions: usize,
    /// Processes and threads of one session at most, where the system lets us bound them; `None`: as
    /// many as there may be.
    pub max_processes: Option<u32>,
    /// Authenticated connections at most.
    pub max_clients: usize,
    /// Unauthenticated connections at most.
    pub max_strangers: usize,
    /// Messages that one connection may send in a second.
    pub message_rate: u32,
    /// After so long without taking anything, a client that fell behind is sent no more of a session.
    pub lag_timeout: Duration,
    /// How long a process has between HUP and TERM, and TERM and KILL.
    pub stop_grace: Duration,
    /// The users that sessions and projects may run as.
    pub run_as: Vec<String>,
    /// The agents.
    pub agents: AgentSettings,
}

/// How agents are run.
#[derive(Debug, Clone, Default)]
pub struct AgentSettings {
    /// Whether agents think with this server's models, whichever a session names.
    pub use_gateway: bool,
    /// The model of sessions that name none: a CLI's own name, or `warren:NAME`.
    pub model: Option<String>,
    /// This server as agents reach it. `None`: not (yet) known, then no agent can use it.
    pub gateway: Option<Gateway>,
    /// Further agents that speak ACP: their name, and the command line that starts them.
    pub acp: BTreeMap<String, Vec<String>>,
    /// Arguments that callers below administrators may give to agents: names of flags.
    pub allowed_args: Vec<String>,
    /// The time without a prompt after which a warm process is stopped.
    pub idle: Duration,
    /// The time without a sign of life after which a turn has failed.
    pub silence: Duration,
    /// After so long, a permission that was asked for is denied.
    pub permission: Duration,
    /// Where the programs are looked for, instead of the `PATH`; for tests and odd installations.
    pub programs: BTreeMap<String, PathBuf>,
}

/// This server, as an agent on this machine reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its base, without a path: `http://127.0.0.1:9178`.
    pub url: String,
}

/// The gateway, which is known once the server listens.
#[derive(Debug, Clone, Default)]
pub(crate) struct GatewaySlot(Arc<Mutex<Option<Gateway>>>);

impl GatewaySlot {
    pub(crate) fn new(gateway: Option<Gateway>) -> Self {
        Self(Arc::new(Mutex::new(gateway)))
    }

    pub(crate) fn set(&self, gateway: Gateway) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
    }

    pub(crate) fn get(&self) -> Option<Gateway> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Settings {
    /// The usual settings, kept in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        Self {
            dir,
            token: None,
            administrator: None,
            log_bytes: 2 * 1024 * 1024,
            history_bytes: 16 * 1024 * 1024,
            max_sessions: 4096,
            max_processes: Some(4096),
            max_clients: 1024,
            max_strangers: 256,
            message_rate: 1000,
            lag_timeout: PATIENCE,
            stop_grace: Duration::from_secs(5),
            run_as: Vec::new(),
            agents: AgentSettings {
                idle: Duration::from_secs(15 * 60),
                silence: Duration::from_secs(10 * 60),
                permission: Duration::from_secs(10 * 60),
                ..AgentSettings::default()
            },
        }
    }
}
