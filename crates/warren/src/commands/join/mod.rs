//! `warren join`: one code makes this machine a worker, a guest of a room or a member of a cluster.
//!
//! - `admission`: exchanges the code for a key, at the server
//! - `joined`: remembers the servers that this machine joined
//! - `whereabouts`: finds where these servers are now
//! - `guest`: joins a room
//! - `list`: shows and forgets the joined servers

mod admission;
mod guest;
mod joined;
mod list;
mod whereabouts;

use anyhow::{anyhow, bail};
use base::Secret;
use clap::{Args, Subcommand};
use client::invitation::{BadCode, Invitation, Purpose};
use daemon::{
    ConfigFile, ServeOptions,
    options::{ProcessOptions, WorkerOptions},
    settings::LOG,
    telemetry,
};
use protocol::workspace::peer::sealed;

pub(super) use self::{
    joined::{JoinedServer, JoinedServers},
    whereabouts::lent_to,
};
use super::{
    cluster, run_client, say,
    table::plain,
    worker::{self as lending},
    worker_runtime,
    workspace::{Output, WorkspaceServer},
};
use crate::exit::usage;

/// Join a server, a room or a workspace by the code of an invitation
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "A code of `warren invite` makes this machine a worker: it gets a key of its own, remembers \
    the server, and lends until you stop it. `warren join` without a code, or `warren worker`, goes on later. A code \
    of `warren invite --room` lends to a room, one of `warren cluster invite` makes this machine's server a \
    member.\n\nExamples:\n  \
    warren join CODE\n  \
    warren join CODE --backend http://127.0.0.1:11434\n  \
    warren join CODE --no-lend       (join and remember only)\n  \
    warren join                      (go on with what was joined)\n  \
    warren join list\n  \
    warren join forget NAME"
)]
pub(crate) struct Join {
    #[command(subcommand)]
    command: Option<Command>,
    /// The code of the invitation [default: go on with the servers that were joined]
    #[arg(value_name = "CODE", hide_env_values = true)]
    code: Option<Secret>,
    /// Join and remember, and do not lend yet
    #[arg(long)]
    no_lend: bool,
    #[command(flatten)]
    worker: WorkerOptions,
    #[command(flatten)]
    process: ProcessOptions,
}

#[derive(Subcommand)]
enum Command {
    /// List the servers that this machine joined
    List(list::List),
    /// Forget a server that this machine joined
    #[command(visible_aliases = ["remove", "rm"])]
    Forget(list::Forget),
}

impl Join {
    pub(crate) fn run(self, file: ConfigFile) -> anyhow::Result<()> {
        match self.command {
            Some(Command::List(list)) => return list.run(),
            Some(Command::Forget(forget)) => return run_client(forget.run()),
            None => self.check()?,
        }
        let Some(code) = self.code.clone() else { return self.go_on(file) };
        if !Invitation::is_code(code.expose()) {
            refuse_no_code(&code)?;
            let output =
                Output { json: false, server: WorkspaceServer::at(Vec::new(), None, None) };
            return run_client(cluster::membership::Join::by(code, output).run(&file));
        }
        let invitation = Invitation::decode(code.expose()).map_err(|error| usage(error.into()))?;
        match &invitation.purpose {
            Purpose::Worker(secret) => {
                let name = lending::name(&self.worker.clone().or(file.worker.clone()));
                let joined = run_client(admission::join(&invitation, secret, &name))?;
                self.lend(file, vec![joined])
            }
            Purpose::Room { .. } => {
                run_client(guest::join(invitation, &self.worker, self.process, &file))
            }
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let named = [
            ("--server", self.worker.server.is_some()),
            ("--secret", self.worker.secret.is_some()),
            ("--protocol", self.worker.protocol.is_some()),
            ("--provider", self.worker.provider.is_some()),
        ];
        match named.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(usage(anyhow!(
                "the code says all about the server: leave out {flag}, also in the environment"
            ))),
            None => Ok(()),
        }
    }

    fn go_on(self, file: ConfigFile) -> anyhow::Result<()> {
        let joined = JoinedServers::new()?.all()?;
        if joined.is_empty() {
            bail!(
                "this machine has not joined a server yet: `warren invite` on the server's machine makes a code \
                 for `warren join CODE`"
            );
        }
        self.lend(file, joined)
    }

    fn lend(self, file: ConfigFile, joined: Vec<JoinedServer>) -> anyhow::Result<()> {
        if self.no_lend {
            return Ok(say("`warren join` or `warren worker` lends this machine's models to it.")?);
        }
        let process = ServeOptions::from(self.process).or(file.serve);
        let format = process.log_format.unwrap_or_default();
        let filter = process.log.clone().unwrap_or_else(|| LOG.to_owned());
        let _log = telemetry::log::start(format, &filter).map_err(usage)?;
        for server in &joined {
            say(&format!("lending to {}, until you stop it", plain(&server.name)))?;
        }
        worker_runtime()?.block_on(lending::lend(self.worker.or(file.worker), process, joined))
    }
}

/// Refuses a text that is not the code of a cluster's invitation either. A damaged code of that kind is
/// passed on to the server, which says what is wrong with it.
fn refuse_no_code(code: &Secret) -> anyhow::Result<()> {
    match sealed::Invitation::decode(code.expose()) {
        Err(sealed::BadInvitation::NotOne | sealed::BadInvitation::Letter(_)) => {
            Err(usage(BadCode::NoCode.into()))
        }
        _ => Ok(()),
    }
}
