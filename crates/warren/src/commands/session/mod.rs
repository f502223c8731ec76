//! `warren session`: terminals and agents that run on a machine.
//!
//! A file for each command, and beside them:
//!
//! - [`attach`], which `warren open` uses, too; `turn`: a prompt and the agent's turn that answers it
//! - `conversation`: an agent's turns so far; `printed`: its events as text

pub(crate) mod attach;
mod change;
mod conversation;
mod history;
mod list;
mod moving;
mod new;
mod printed;
mod send;
mod show;
mod turn;

use std::io::{IsTerminal, stdout};

use clap::{Args, Subcommand};
use daemon::ConfigFile;
use protocol::workspace::SessionInfo;

pub(crate) use new::Mode;

use super::{run_client, workspace::short};

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
    #[command(visible_aliases = ["rm", "kill"])]
    Remove(change::Remove),
    /// Call a session something else
    Rename(change::Rename),
    /// Move an agent to another machine of the cluster
    Move(moving::Move),
    /// Print the conversation with an agent, or what a terminal wrote
    History(history::PrintHistory),
}

/// The longest line: as wide as the terminal; into a file or pipe without a bound.
fn line_width() -> usize {
    let size = attach::size().ok().filter(|_| stdout().is_terminal());
    size.map_or(usize::MAX, |(cols, _)| cols.into())
}

/// A session's name on a command line, if a shell takes it as it is; else its id.
fn on_command_line(session: &SessionInfo) -> String {
    let is_plain = |name: &&str| {
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        !name.is_empty() && !name.starts_with('-') && name.chars().all(fits)
    };
    session.name.as_deref().filter(is_plain).map_or_else(|| short(session.id), str::to_owned)
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
            Self::Remove(remove) => remove.run(file).await,
            Self::Rename(rename) => rename.run(file).await,
            Self::Move(moving) => moving.run(file).await,
            Self::History(history) => history.run(file).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{turn::tests::session, *};

    #[test]
    fn a_name_that_a_shell_would_read_otherwise_gives_way_to_the_id() {
        let named = |name: &str| SessionInfo { name: Some(name.to_owned()), ..session() };
        assert_eq!(on_command_line(&named("build-2.x")), "build-2.x");
        for odd in ["", "two words", "$(reboot)", "-x", "a;b"] {
            assert_eq!(on_command_line(&named(odd)), short(session().id), "{odd:?}");
        }
    }
}
