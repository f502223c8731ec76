//! The settings of the workspace: its directory and its bounds.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base::Secret;
use session::terminal::viewer::PATIENCE;

/// How long terminals and agents outlive the daemon by default.
const KEEP_SESSIONS: Duration = Duration::from_secs(60);

/// The settings of the workspace.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of histories and of agents' private files.
    pub dir: PathBuf,
    /// The token of administrators of the workspace, if there is one.
    pub token: Option<Secret>,
    /// The token of the server's own administrator, who is an administrator of the workspace, too.
    pub administrator: Option<Secret>,
    /// The most output of a session that is kept in memory, in bytes.
    pub log_bytes: usize,
    /// The most output of a session that is kept on the disk, in bytes.
    pub history_bytes: u64,
    /// The most sessions, including those that have ended.
    pub max_sessions: usize,
    /// The most processes and threads of one session, where the system can bound them; `None`: no
    /// bound.
    pub max_processes: Option<u32>,
    /// The most authenticated connections.
    pub max_clients: usize,
    /// The most unauthenticated connections.
    pub max_strangers: usize,
    /// The most messages that one connection may send in a second.
    pub message_rate: u32,
    /// A client that fell behind gets no more output of a session after taking nothing for this
    /// long.
    pub lag_timeout: Duration,
    /// The time between HUP and TERM, and between TERM and KILL, when a process is ended.
    pub stop_grace: Duration,
    /// How long terminals and agents outlive this daemon while no next one is there; zero: they end
    /// with it.
    pub keep_sessions: Duration,
    /// The users that sessions and projects may run as.
    pub run_as: Vec<String>,
    /// The settings of agents.
    pub agents: AgentSettings,
}

/// How agents are run.
#[derive(Debug, Clone, Default)]
pub struct AgentSettings {
    /// Whether agents always use this server's models, even if a model's name has no `warren:`
    /// prefix.
    pub use_gateway: bool,
    /// The model of sessions that name none: a name that the agent knows, or `warren:NAME`.
    pub model: Option<String>,
    /// The address at which agents reach this server. While it is `None`, they cannot use its
    /// models.
    pub gateway: Option<Gateway>,
    /// Further agents that speak ACP: their names, and the command lines that start them.
    pub acp: BTreeMap<String, Vec<String>>,
    /// The names of further flags that callers below administrators may give to agents.
    pub allowed_args: Vec<String>,
    /// The time without a prompt after which a warm process is stopped.
    pub idle: Duration,
    /// The time without a sign of life after which a turn has failed.
    pub silence: Duration,
    /// The time after which a permission request without an answer is denied.
    pub permission: Duration,
    /// Where the agents' programs are, instead of a search in the `PATH`; for tests and unusual
    /// installations.
    pub programs: BTreeMap<String, PathBuf>,
}

/// This server, as an agent on this machine reaches it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gateway {
    /// Its base URL, without a path: `http://127.0.0.1:9178`.
    pub url: String,
}

/// The gateway, which is known once the server listens.
#[derive(Debug, Clone, Default)]
pub struct GatewaySlot(Arc<Mutex<Option<Gateway>>>);

impl GatewaySlot {
    pub(crate) fn new(gateway: Option<Gateway>) -> Self {
        Self(Arc::new(Mutex::new(gateway)))
    }

    pub(crate) fn set(&self, gateway: Gateway) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(gateway);
    }

    /// The gateway, if it is known by now.
    pub fn get(&self) -> Option<Gateway> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The node id of this machine, while it is a member of a cluster.
#[derive(Debug, Clone, Default)]
pub struct NodeSlot(Arc<Mutex<Option<String>>>);

impl NodeSlot {
    /// Notes that this machine is a member with this id; `None` once it is in no cluster any more.
    pub fn set(&self, node: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = node;
    }

    /// The id; `None` while this machine is in no cluster.
    pub fn get(&self) -> Option<String> {
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
            keep_sessions: KEEP_SESSIONS,
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
