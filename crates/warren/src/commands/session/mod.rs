//! `warren session`: terminals and agents that run on a machine.
//!
//! A file for each command, [`attach`], which `warren open` uses, too, and `turn`: a prompt and the
//! agent's turn that answers it.

pub(crate) mod attach;
mod change;
mod history;
mod list;
mod moving;
mod new;
mod send;
mod show;
mod turn;

use clap::{Args, Subcommand};
use daemon::ConfigFile;

pub(crate) use new::Mode;

use super::run_client;

/// Make, list, use and end terminals and agents of a machine
#[derive(Args)]
#[command(after_help = "Sessions are named by their id, by how it begins, or by their name.\n\n\
    Examples:\n  \
    warren session new --prompt 'why does the build fail?' --wait\n  \
    warren session new --mode pty --name claude\n  \
    warren session attach claude\n  \
    warren session new --node lab --prompt 'run the tests' --wait\n  \
    warren session list --server https://gpu.example --token wk_…")]
pub(crate) struct Session {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a session: an agent, or an agent's own terminal
    New(Box<new::New>),
    /// List the sessions
    List(list::List),
    /// Show one session
    Show(show::Show),
    /// Use a session: a terminal as if it were here, an agent as a chat
    Attach(attach::Attach),
    /// Give a session a whole prompt
    Send(send::Send),
    /// End a session, and all that it started
    Kill(change::Kill),
    /// Call a session something else
    Rename(change::Rename),
    /// Move an agent to another machine of the cluster
    Move(moving::Move),
    /// Print what a session wrote
    History(history::PrintHistory),
}

impl Session {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.command.run(file))
    }
}

impl Command {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::New(new) => new.run(file).await,
            Self::List(list) => list.run(file).await,
            Self::Show(show) => show.run(file).await,
            Self::Attach(attach) => attach.run(file).await,
            Self::Send(send) => send.run(file).await,
            Self::Kill(kill) => kill.run(file).await,
            Self::Rename(rename) => rename.run(file).await,
            Self::Move(moving) => moving.run(file).await,
            Self::History(history) => history.run(file).await,
        }
    }
}
