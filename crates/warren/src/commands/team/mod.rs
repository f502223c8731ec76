//! `warren team`: a leader session and its team workers.
//!
//! - `make`: makes teams and team workers; `look`: lists, shows and deletes teams
//! - `work`: gives work to team workers, and waits for it; `talk`: messages between members
//! - `find`: finds the team and the member that are meant; `mcp`: a team, as tools for an agent in it

mod find;
mod look;
mod make;
mod mcp;
mod talk;
mod work;

use clap::{Args, Subcommand};
use daemon::ConfigFile;

use super::{worker_runtime, workspace::Output};

/// Make teams of agents, give them work, and hear what came of it
#[derive(Args)]
#[command(
    after_help = "Teams and their members are named by their id, by how it begins, or by their name; the \
    leader of a team is also called leader.\n\n\
    Examples:\n  \
    warren team create review --dir ~/src/site\n  \
    warren team handoff review 'look for races in the scheduler' --name races\n  \
    warren team assign review 'write the missing tests'\n  \
    warren team wait review\n  \
    warren team inbox review leader"
)]
pub(crate) struct TeamCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a team and its leader
    Create(Box<make::Create>),
    /// List the teams
    List(look::List),
    /// Show a team and its members
    Show(look::Show),
    /// Make a team worker without work
    Spawn(make::Spawn),
    /// Give work to a new team worker
    Assign(work::Assign),
    /// Give work to a new team worker, and wait for what comes of it
    Handoff(work::Handoff),
    /// Wait for team workers to report
    Wait(work::Wait),
    /// Tell a member something
    Send(talk::Send),
    /// Read what a member was sent
    Inbox(talk::Inbox),
    /// Say what came of a team worker's work
    Report(work::Report),
    /// Delete a team, and end its sessions
    #[command(visible_alias = "rm")]
    Remove(look::Remove),
    /// Serve an agent the tools of its team, as the server has agents do
    Mcp(mcp::Mcp),
}

impl TeamCommand {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(self.command.run(file))
    }
}

impl Command {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::Create(create) => create.run(file).await,
            Self::List(list) => list.run(file).await,
            Self::Show(show) => show.run(file).await,
            Self::Spawn(spawn) => spawn.run(file).await,
            Self::Assign(assign) => assign.run(file).await,
            Self::Handoff(handoff) => handoff.run(file).await,
            Self::Wait(wait) => wait.run(file).await,
            Self::Send(send) => send.run(file).await,
            Self::Inbox(inbox) => inbox.run(file).await,
            Self::Report(report) => report.run(file).await,
            Self::Remove(remove) => remove.run(file).await,
            Self::Mcp(mcp) => mcp.run(file).await,
        }
    }
}
