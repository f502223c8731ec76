//! `warren room`: a file for each command. What they share:
//!
//! - `hosts`: finds the server of a room
//! - `room_name`: a room's code or URL, and its password
//! - `tokens`: this machine's tokens of rooms
//! - `follow`: a room's events, across broken connections; `narrator` puts them into words
//! - `invitation`: how others reach a room

mod ask;
mod change;
mod close;
mod create;
mod follow;
pub(super) mod hosts;
mod invitation;
pub(super) mod join;
mod kick;
mod leave;
mod list;
mod narrator;
pub(super) mod room_name;
mod show;
mod tokens;
mod watch;

use clap::Subcommand;
use daemon::ConfigFile;

pub(super) use self::invitation::{is_loopback, on_the_network};
use super::worker_runtime;

#[derive(Subcommand)]
pub(crate) enum Room {
    /// Make a room, and show how friends join
    Create(Box<create::Create>),
    /// List rooms
    List(list::List),
    /// Show a room and its participants
    Show(show::Show),
    /// Lend a model of this machine to a room
    Join(Box<join::Join>),
    /// Remove a participant of this machine from a room
    Leave(leave::Leave),
    /// Show the events of a room live
    Watch(watch::Watch),
    /// Ask a model in a room
    Ask(ask::Ask),
    /// Close a room for good
    #[command(visible_aliases = ["rm", "close"])]
    Remove(close::Close),
    /// Remove a participant from a room
    Kick(kick::Kick),
    /// Change a room's name or password
    Change(change::Change),
}

impl Room {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        worker_runtime()?.block_on(async {
            match self {
                Self::Create(create) => create.run(file).await,
                Self::List(list) => list.run(file).await,
                Self::Show(show) => show.run(file).await,
                Self::Join(join) => join.run(file).await,
                Self::Leave(leave) => leave.run(file).await,
                Self::Watch(watch) => watch.run(file).await,
                Self::Ask(ask) => ask.run(file).await,
                Self::Remove(close) => close.run(file).await,
                Self::Kick(kick) => kick.run(file).await,
                Self::Change(change) => change.run(file).await,
            }
        })
    }
}
