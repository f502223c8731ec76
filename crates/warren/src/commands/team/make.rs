//! `warren team create` and `spawn`.

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::{
    SessionMode,
    client::{CreateTeam, SpawnWorker},
};
use serde_json::json;

use super::{Output, find::team};
use crate::commands::{
    say, say_json,
    session::Mode,
    table::plain,
    workspace::{project, terms::called},
};

/// Make a team and its leader
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team create review --dir ~/src/site")]
pub(super) struct Create {
    /// What to call it
    name: String,
    /// The directory to start in [default: the project's, or this one]
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// The project that it belongs to
    #[arg(long)]
    project: Option<String>,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    output: Output,
}

/// Make a team worker without work
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team spawn review --name tester --provider codex")]
pub(super) struct Spawn {
    /// The team
    team: String,
    /// What to call the team worker
    #[arg(long)]
    name: Option<String>,
    /// The directory to start in [default: the leader's]
    #[arg(long, value_name = "DIR")]
    dir: Option<String>,
    /// The machine to run it on: its name, or its node id or how that begins [default: the leader's]
    #[arg(long, value_name = "NODE", hide_short_help = true)]
    node: Option<String>,
    #[command(flatten)]
    agent: Agent,
    #[command(flatten)]
    output: Output,
}

/// Which agent
#[derive(Args)]
struct Agent {
    /// The agent: claude, codex, gemini, opencode, … [default: claude, for team workers the leader's]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The agent's model
    #[arg(long)]
    model: Option<String>,
    /// How it is driven: turn by turn, or as a terminal [default: sdk]
    #[arg(long, value_enum, hide_short_help = true)]
    mode: Option<Mode>,
    /// More arguments for the agent's command line, those that the server allows
    #[arg(last = true, value_name = "ARG", hide_short_help = true)]
    args: Vec<String>,
}

impl Agent {
    fn extra_args(&self) -> Option<Vec<String>> {
        Some(self.args.clone()).filter(|args| !args.is_empty())
    }

    fn mode(&self) -> Option<SessionMode> {
        self.mode.map(SessionMode::from)
    }
}

impl Create {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let server = &self.output.server;
        let mut workspace = server.connect(file).await?;
        let project_id = match &self.project {
            Some(meant) => Some(project(&mut workspace, meant).await?),
            None => None,
        };
        let made = workspace.create_team(CreateTeam {
            name: self.name,
            working_dir: server.directory(self.dir.as_deref(), project_id.is_some())?,
            extra_args: self.agent.extra_args(),
            mode: self.agent.mode(),
            model: self.agent.model,
            project_id,
            provider: self.agent.provider,
        });
        let made = made.await?;
        if self.output.json {
            return Ok(say_json(&made)?);
        }
        let leader = called(&made.leader_session);
        Ok(say(&format!("{}\n{} is led by {leader}", made.team.id, plain(&made.team.name)))?)
    }
}

impl Spawn {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        let server = &self.output.server;
        let working_dir = server.directory_on(self.node.as_deref(), self.dir.as_deref(), true)?;
        let made = workspace.spawn_worker(SpawnWorker {
            team_id: team.id,
            working_dir,
            extra_args: self.agent.extra_args(),
            mode: self.agent.mode(),
            model: self.agent.model,
            name: self.name,
            provider: self.agent.provider,
            node_id: self.node,
        });
        let session = made.await?.worker_session;
        match self.output.json {
            true => {
                let made = json!({"team_id": team.id, "worker_session": session});
                Ok(say_json(&made)?)
            }
            false => Ok(say(&session.id.to_string())?),
        }
    }
}
