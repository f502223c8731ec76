//! `warren room`: rooms made, looked into, joined, watched, asked and closed.
//!
//! A file for each command, and what they share: `hosts`, on which server a room is; `place`, how
//! people name one; `kept`, the tokens of this machine; `follow`, what happens in a room through
//! broken connections; `invitation` and `qr`, how others come; `prompt`, questions at a terminal.

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
mod qr;
mod show;
mod watch;

use std::io::Write;

use base::Secret;
use clap::{Args, Subcommand};
use daemon::ConfigFile;

use super::worker_runtime;

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

/// Writes a line to standard error: for people who look on, and not for programs. That nobody looks
/// is no failure.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// What a terminal may be shown of text that somebody else wrote: its lines and tabs, and nothing
/// that would move the cursor or turn the writing around.
fn clean(text: &str) -> String {
    let turns = |c| matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let harmful = |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || turns(c);
    text.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// So many of what.
fn count(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_wrote_does_nothing_to_a_terminal() {
        assert_eq!(clean("a\n\tb\u{1b}[2Jc\r\u{202e}d"), "a\n\tb\u{fffd}[2Jc\u{fffd}\u{fffd}d");
        assert_eq!([count(1, "room"), count(0, "room")], ["1 room", "0 rooms"]);
    }
}
