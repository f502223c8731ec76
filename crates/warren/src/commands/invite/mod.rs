//! `warren invite`: one code by which a machine, a guest or a member joins.
//!
//! - `shown`: the code and its QR on a terminal
//! - `list`: shows and revokes invitations

mod list;
pub(super) mod shown;

use anyhow::anyhow;
use base::Secret;
use clap::{Args, Subcommand};
use client::admin::{
    invitations::{CreateInvitation, InviteToRoom},
    time,
};
use daemon::ConfigFile;
use jiff::Timestamp;

use super::{cluster, run_client, say_json, target::RunningServer, workspace::Output};
use crate::exit::usage;

/// Invite a machine, a guest or a member by one code for `warren join`
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "The code holds the server's addresses, the fingerprint of its certificate and a secret that is good \
    for one machine. The first that presents it may use it: send it as you would send a password.\n\nExamples:\n  \
    warren invite\n  \
    warren invite --name gpu-box --expires 1h --qr\n  \
    warren invite --url https://warren.example\n  \
    warren invite --room swift-eagle-42\n  \
    warren invite --member\n  \
    warren invite list\n  \
    warren invite revoke gpu-box"
)]
pub(crate) struct Invite {
    #[command(subcommand)]
    command: Option<Command>,
    /// The machine's name [default: it names itself]
    #[arg(long, value_name = "MACHINE")]
    name: Option<String>,
    /// When the code expires [default: 24h]
    ///
    /// 24h, 7d, or a time; at most 30 days from now.
    #[arg(long, value_name = "WHEN")]
    expires: Option<String>,
    /// An https:// URL by which others reach the server, beside its addresses
    #[arg(long, value_name = "URL", hide_short_help = true)]
    url: Option<String>,
    /// Invite guests of this room, by one of its codes
    #[arg(long, value_name = "CODE", conflicts_with_all = ["name", "expires", "member"])]
    room: Option<String>,
    /// The room's password, if it has one; it goes into the code
    #[arg(
        long,
        env = "WARREN_ROOM_PASSWORD",
        value_name = "PASSWORD",
        hide_env_values = true,
        hide_short_help = true
    )]
    password: Option<Secret>,
    /// Invite a member of this server's cluster
    ///
    /// As `warren cluster invite` does.
    #[arg(long, conflicts_with_all = ["name", "expires", "url"], hide_short_help = true)]
    member: bool,
    /// Show a QR code
    ///
    /// Also where standard error is no terminal.
    #[arg(long, hide_short_help = true)]
    qr: bool,
    #[command(flatten)]
    output: ServerOutput,
}

#[derive(Args)]
pub(super) struct ServerOutput {
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) server: RunningServer,
}

#[derive(Subcommand)]
enum Command {
    /// List the invitations, and the machines that joined by them
    List(list::List),
    /// Revoke an invitation and its machine's key
    #[command(visible_aliases = ["remove", "rm"])]
    Revoke(list::Revoke),
}

impl Invite {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.command(file))
    }

    async fn command(self, file: &ConfigFile) -> anyhow::Result<()> {
        match self.command {
            Some(Command::List(list)) => list.run(file).await,
            Some(Command::Revoke(revoke)) => revoke.run(file).await,
            None if self.member => {
                let ServerOutput { json, server } = self.output;
                let output = Output { json, server: server.workspace() };
                cluster::invite::Invite::at(output).run(file).await
            }
            None if self.room.is_some() => self.guest(file).await,
            None => self.machine(file).await,
        }
    }

    async fn machine(self, file: &ConfigFile) -> anyhow::Result<()> {
        let expires_in_secs = self.lasts().map_err(usage)?;
        let request = CreateInvitation { name: self.name, expires_in_secs, url: self.url };
        let made = self.output.server.warren(&file.serve)?.create_invitation(&request).await?;
        match self.output.json {
            true => Ok(say_json(&made)?),
            false => shown::machine(&made, self.qr),
        }
    }

    async fn guest(self, file: &ConfigFile) -> anyhow::Result<()> {
        let password = self.password.map(|password| password.expose().to_owned());
        let room = self.room.unwrap_or_default();
        let request = InviteToRoom { room, password, url: self.url };
        let made = self.output.server.warren(&file.serve)?.invite_to_room(&request).await?;
        match self.output.json {
            true => Ok(say_json(&made)?),
            false => shown::guest(&made, self.qr),
        }
    }

    /// The lifetime of the invitation in seconds.
    fn lasts(&self) -> anyhow::Result<Option<u64>> {
        let now = Timestamp::now();
        let Some(when) = &self.expires else { return Ok(None) };
        let at = time::future(when, now).map_err(|error| anyhow!("--expires: {error}"))?;
        let lasts = u64::try_from(at.as_second() - now.as_second()).ok();
        lasts.filter(|secs| *secs > 0).map(Some).ok_or_else(|| anyhow!("--expires: that is over"))
    }
}
