//! Settings of the workspace, as they are written.

use std::{collections::BTreeMap, path::PathBuf};

use base::Secret;
use clap::{Args, builder::BoolishValueParser};
use serde::Deserialize;

use super::Seconds;

options! {
    /// Settings of `warren serve` about the workspace, and of `[workspace]` in the file, where they are
    /// spelled without `workspace-`.
    WorkspaceOptions {
        /// Whether sessions run on this machine at all [default: true]
        #[arg(id = "workspace_enabled", long = "workspace", env = "WARREN_WORKSPACE",
            num_args = 0..=1, require_equals = true, default_missing_value = "true",
            value_name = "BOOL", value_parser = BoolishValueParser::new())]
        enabled: Option<bool>,
        /// What an administrator of the workspace may present, beside keys [default: none]
        #[arg(id = "workspace_token", long = "workspace-token", env = "WARREN_WORKSPACE_TOKEN",
            value_name = "TOKEN", hide_env_values = true)]
        token: Option<Secret>,
        /// Directory of sessions' output, and of agents' private files [default: workspace in the data
        /// directory]
        #[arg(id = "workspace_dir", long = "workspace-dir", env = "WARREN_WORKSPACE_DIR",
            value_name = "DIR")]
        dir: Option<PathBuf>,
        /// Output of a session that is kept in memory, in KiB: in the file only
        #[arg(skip)]
        log_kib: Option<usize>,
        /// Output of a session that is kept on the disk, in MiB: in the file only
        #[arg(skip)]
        history_mib: Option<u64>,
        /// The most sessions, those that have ended among them: in the file only
        #[arg(skip)]
        max_sessions: Option<usize>,
        /// The most processes and threads of a session, where the system can bound them; 0: no bound
        /// [default: 4096]: in the file only
        #[arg(skip)]
        max_processes: Option<u32>,
        /// The most clients at the same time: in the file only
        #[arg(skip)]
        max_clients: Option<usize>,
        /// The most messages of a client in a second: in the file only
        #[arg(skip)]
        message_rate: Option<u32>,
        /// After so long without taking anything, a client that fell behind is sent no more of a
        /// session: in the file only
        #[arg(skip)]
        lag_timeout_secs: Option<Seconds>,
        /// How long a process has between being asked to end and being made to: in the file only
        #[arg(skip)]
        stop_grace_secs: Option<Seconds>,
        /// Users whom sessions and projects may run as, besides the server's own: in the file only
        #[arg(skip)]
        run_as_users: Option<Vec<String>>,
        /// How agents are run: `[workspace.agents]` in the file
        #[arg(skip)]
        agents: Option<AgentOptions>,
    }
}

/// `[workspace.agents]` of the file: how agents are run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentOptions {
    /// Whether they think with this server's models, whichever a session names.
    pub use_gateway: bool,
    /// The model of sessions that name none: an agent's own name for it, or `warren:NAME`.
    pub model: Option<String>,
    /// After so long without a prompt, an agent's process is stopped.
    pub idle_secs: Option<Seconds>,
    /// After so long without a sign of life, a turn has failed.
    pub silence_secs: Option<Seconds>,
    /// After so long, what an agent has asked leave for is denied.
    pub permission_secs: Option<Seconds>,
    /// Flags that may be given to agents by who is no administrator.
    pub allowed_args: Vec<String>,
    /// Further agents that speak ACP: a name, and the command line that starts it.
    pub acp: BTreeMap<String, Vec<String>>,
    /// Where agents' programs are, by the name of the agent, where they are not in the `PATH`.
    pub programs: BTreeMap<String, PathBuf>,
}
