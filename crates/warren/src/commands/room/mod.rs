//! `warren room`: rooms made, looked into, joined, watched, asked and closed.
//!
//! A file for each command, and what they share: `hosts`, on which server a room is; `place`, how
//! people name one; `kept`, the tokens of this machine; `follow`, what happens in a room through
//! broken connections; `invitation`, how others come; `prompt`, questions at a terminal.

mod ask;
mod change;
mod close;
mod create;
mod follow;
mod hosts;
mod invitation;
mod join;
mod kept;
mod kick;
mod leave;
mod list;
mod narrator;
mod place;
mod prompt;
mod show;
mod watch;

use base::Secret;
use clap::{Args, Subcommand};
use daemon::ConfigFile;

use super::{note, words::count, worker_runtime};

/// Share models with friends in a room
#[derive(Args)]
pub(crate) struct Room {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make a room, and tell how friends come
    Create(create::Create),
    /// List rooms
    List(list::List),
    /// Tell what a room is, and who is in it
    Show(show::Show),
    /// Lend a model of this machine to a room
    Join(Box<join::Join>),
    /// Take a participant of this machine out of a room
    Leave(leave::Leave),
    /// Tell what happens in a room, as it happens
    Watch(watch::Watch),
    /// Ask a model in a room
    Ask(ask::Ask),
    /// Close a room for good
    Close(close::Close),
    /// Remove a participant from a room
    Kick(kick::Kick),
    /// Change a room's name or password
    Change(change::Change),
}

impl Room {
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
            Self::Join(join) => join.run(file).await,
            Self::Leave(leave) => leave.run(file).await,
            Self::Watch(watch) => watch.run(file).await,
            Self::Ask(ask) => ask.run(file).await,
            Self::Close(close) => close.run(file).await,
            Self::Kick(kick) => kick.run(file).await,
            Self::Change(change) => change.run(file).await,
        }
    }
}

/// The password of a room
#[derive(Args)]
struct Password {
    /// The room's password, if it has one
    #[arg(long, env = "WARREN_ROOM_PASSWORD", value_name = "PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
}

impl Password {
    fn get(&self) -> Option<&Secret> {
        self.password.as_ref().filter(|password| !password.expose().is_empty())
    }
}
