//! Settings of the workspace, as they are written.

use std::{collections::BTreeMap, path::PathBuf};

use base::Secret;
use clap::{Args, builder::BoolishValueParser};
use serde::Deserialize;

use super::{Seconds, Span, heading};

options! {
    /// Settings of `warren serve` about the workspace, and of `[workspace]` in the file, where they
    /// are spelled without `workspace-`.
    WorkspaceOptions {
        /// Whether sessions run on this machine at all [default: true]
        #[arg(id = "workspace_enabled", long = "workspace", env = "WARREN_WORKSPACE",
            num_args = 0..=1, require_equals = true, default_missing_value = "true",
            value_name = "BOOL", value_parser = BoolishValueParser::new())]
        #[arg(help_heading = heading::WORKSPACE, hide_short_help = true)]
        enabled: Option<bool>,
        /// A token of the workspace's administrator, beside keys [default: none]
        #[arg(id = "workspace_token", long = "workspace-token", env = "WARREN_WORKSPACE_TOKEN",
            value_name = "TOKEN", hide_env_values = true)]
        #[arg(help_heading = heading::WORKSPACE, hide_short_help = true)]
        token: Option<Secret>,
        /// Directory of sessions' output, and of agents' private files [default: workspace in the
        /// data directory]
        #[arg(id = "workspace_dir", long = "workspace-dir", env = "WARREN_WORKSPACE_DIR",
            value_name = "DIR")]
        #[arg(help_heading = heading::WORKSPACE, hide_short_help = true)]
        dir: Option<PathBuf>,
        /// Output of a session that is kept in memory
        #[arg(skip)]
        log_kib: Option<usize>,
        /// Output of a session that is kept on disk
        #[arg(skip)]
        history_mib: Option<u64>,
        /// The most sessions, including those that have ended
        #[arg(skip)]
        max_sessions: Option<usize>,
        /// The most processes and threads of a session, where the system can bound them; 0: no
        /// bound
        #[arg(skip)]
        max_processes: Option<u32>,
        /// The most clients at the same time
        #[arg(skip)]
        max_clients: Option<usize>,
        /// The most messages of a client in a second; further ones wait
        #[arg(skip)]
        message_rate: Option<u32>,
        /// A client that is behind and reads nothing for this long is sent no more of a session's
        /// output
        #[arg(skip)]
        lag_timeout_secs: Option<Seconds>,
        /// How long a process may take to end before it is killed
        #[arg(skip)]
        stop_grace_secs: Option<Seconds>,
        /// How long terminals and agents go on without the server [default: 60s]
        ///
        /// It may be restarted, or have crashed. 0: they end with it.
        #[arg(id = "workspace_keep_sessions", long = "keep-sessions", env = "WARREN_KEEP_SESSIONS",
            value_name = "SPAN", help_heading = heading::WORKSPACE, hide_short_help = true)]
        keep_sessions: Option<Span>,
        /// Users that sessions and projects may run as, besides the server's own; never root
        #[arg(skip)]
        run_as_users: Option<Vec<String>>,
        /// How agents are run: `[workspace.agents]` in the file
        #[arg(skip)]
        agents: Option<AgentOptions>,
    }
}

section! {
    /// `[workspace.agents]` of the file: how agents are run.
    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    AgentOptions {
        /// Whether all agents use this server's models; agents that cannot are refused.
        use_gateway: bool,
        /// The model of sessions that name none: an agent's own name for it, or `warren:NAME` for
        /// one of this server's.
        model: Option<String>,
        /// An agent's process is stopped when it gets no prompt for this long.
        idle_secs: Option<Seconds>,
        /// A turn fails when its agent gives no sign of life for this long.
        silence_secs: Option<Seconds>,
        /// A permission that an agent asks for is denied after this long.
        permission_secs: Option<Seconds>,
        /// Flags that callers who are no administrators may give to agents.
        allowed_args: Vec<String>,
        /// Further agents that speak ACP: a name, and the words of the command line that starts it.
        acp: BTreeMap<String, Vec<String>>,
        /// The programs of agents that are not in the `PATH`, by the agent's name.
        programs: BTreeMap<String, PathBuf>,
    }
}
