//! `warren cluster`: the machines of a workspace. A file for each command, or for two about one thing:
//!
//! - `invite`: inviting a machine, and the invitations that are open
//! - `membership`: joining, leaving, taking another machine out, and names

pub(super) mod invite;
mod list;
pub(super) mod membership;
mod peers;

use clap::{Args, Subcommand};
use daemon::ConfigFile;
use serde_json::json;

use super::{run_client, say, say_json_line};

/// Join machines into one workspace
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren cluster list\n  \
    warren cluster invite            (on a member)\n  \
    warren cluster join CODE         (on the new machine)\n  \
    warren cluster forget lost-box   (on a member)")]
pub(crate) struct Cluster {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the machines of the workspace
    List(list::List),
    /// Give a machine of the workspace another name
    Rename(membership::Rename),
    /// List the addresses that a machine dials, or change them
    Peers(Box<peers::Peers>),
    /// Invite one machine: prints the line by which it joins
    Invite(invite::Invite),
    /// List the invitations that may still be used, or withdraw one
    Invites(invite::Invites),
    /// Make this machine a member, by an invitation
    Join(membership::Join),
    /// Take this machine out; its sessions go on
    Leave(membership::Leave),
    /// Take another machine out that is lost or not wanted any more
    #[command(visible_aliases = ["remove", "rm"])]
    Forget(membership::Forget),
}

impl Cluster {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.command.run(file))
    }
}

impl Command {
    async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self {
            Self::List(list) => list.run(file).await,
            Self::Rename(rename) => rename.run(file).await,
            Self::Peers(peers) => peers.run(file).await,
            Self::Invite(invite) => invite.run(file).await,
            Self::Invites(invites) => invites.run(file).await,
            Self::Join(join) => join.run(file).await,
            Self::Leave(leave) => leave.run(file).await,
            Self::Forget(forget) => forget.run(file).await,
        }
    }
}

/// Prints the server's words about a change that it made.
fn tell(action: &str, words: &str, json: bool) -> anyhow::Result<()> {
    match json {
        true => say_json_line(&json!({"action": action, "ok": true, "message": words}))?,
        false => say(words)?,
    }
    Ok(())
}
