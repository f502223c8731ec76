//! `warren team mcp`: a team, as tools for an agent in it.

use base::Secret;
use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::{SessionId, TeamId};

use crate::commands::servers::Lookup;

/// Serve an agent the tools of its team (handoff, assign, wait, send, inbox, report) on standard input and
/// output. The server starts agents of teams with it; the environment of each says who it is
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team mcp --token TOKEN --team 550e8400-e29b-41d4-a716-446655440000 \
    --session 550e8400-e29b-41d4-a716-446655440001")]
pub(super) struct Mcp {
    /// The server [default: the one that runs here]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL")]
    server: Option<String>,
    /// What the member was started with
    #[arg(long, env = "WARREN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Secret,
    /// The team's id
    #[arg(long, env = "WARREN_TEAM", value_name = "ID")]
    team: TeamId,
    /// The id of the member's session
    #[arg(long, env = "WARREN_SESSION_ID", value_name = "ID")]
    session: SessionId,
}

impl Mcp {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let lookup = Lookup { named: self.server.as_slice(), data_dir: None, config: &file.serve };
        let servers = lookup.servers();
        servers.check()?;
        Ok(mcp::serve(servers.first(), self.token, self.team, self.session).await?)
    }
}
