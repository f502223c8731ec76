//! The server that an administration command works on: a running one, or a stopped one's data directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use base::Secret;
use clap::Args;
use client::Warren;
use daemon::{OfflineServer, ServeOptions, options::heading};

use super::{
    servers::{Lookup, token_file},
    workspace::WorkspaceServer,
};
use crate::exit::usage;

/// The server to work on
#[derive(Args)]
pub(crate) struct Target {
    /// The server [default: the one that runs here]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',',
        help_heading = heading::SERVER)]
    server: Vec<String>,
    /// Its administrator's token, or a key of scope admin [default: admin.token in the data
    /// directory]
    #[arg(long, env = "WARREN_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true,
        hide_short_help = true, help_heading = heading::SERVER)]
    admin_token: Option<Secret>,
    /// The data directory of a server on this machine: of one that runs, or of a stopped one, which is worked on
    /// without it; with --server, only where its admin.token is
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = heading::SERVER)]
    data_dir: Option<PathBuf>,
    /// The database that a stopped server shares with others
    #[arg(long, env = "WARREN_DATABASE", value_name = "URL", hide_env_values = true, hide_short_help = true,
        help_heading = heading::SERVER)]
    database: Option<Secret>,
}

/// The server that a command works on.
pub(crate) enum AdminTarget {
    /// A running server.
    Running(Box<Warren>),
    /// The data directory of a server that is not running.
    Offline(Box<OfflineServer>),
}

impl Target {
    /// The server that the flags and the file name.
    pub(crate) fn choose(&self, file: &ServeOptions) -> anyhow::Result<AdminTarget> {
        self.choose_by(file, OfflineServer::open)
    }

    /// As [`Target::choose`], for commands that may run before the first start of a server.
    pub(crate) fn choose_or_make(&self, file: &ServeOptions) -> anyhow::Result<AdminTarget> {
        self.choose_by(file, OfflineServer::open_or_make)
    }

    fn choose_by(
        &self,
        file: &ServeOptions,
        open: impl FnOnce(&Path, Option<&Secret>) -> anyhow::Result<OfflineServer>,
    ) -> anyhow::Result<AdminTarget> {
        let (named, data_dir) = (self.server.as_slice(), self.data_dir.as_ref());
        let lookup = Lookup { named, data_dir, config: file };
        if let ([], Some(directory)) = (named, data_dir)
            && lookup.running().is_none()
        {
            let database = self.database.as_ref().or(file.database.as_ref());
            return Ok(AdminTarget::Offline(Box::new(open(directory, database)?.priced_by(file)?)));
        }
        // A directory names its server, whatever the configuration says.
        let config = ServeOptions { server: None, ..file.clone() };
        let config = if data_dir.is_some() { &config } else { file };
        let running = running(&Lookup { config, ..lookup }, self.admin_token.as_ref())?;
        Ok(AdminTarget::Running(Box::new(running)))
    }
}

/// The running server to ask
#[derive(Args)]
pub(crate) struct RunningServer {
    /// The server [default: the one that runs here]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',',
        help_heading = heading::SERVER)]
    server: Vec<String>,
    /// Its administrator's token, or a key of scope admin [default: admin.token in the data
    /// directory]
    #[arg(long, env = "WARREN_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true,
        hide_short_help = true, help_heading = heading::SERVER)]
    admin_token: Option<Secret>,
    /// The server's data directory on this machine, where its admin.token is
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = heading::SERVER)]
    data_dir: Option<PathBuf>,
}

impl RunningServer {
    /// Whether a flag or the environment names the server.
    pub(crate) fn is_named(&self) -> bool {
        !self.server.is_empty()
    }

    /// The server's address. Connects to nothing.
    pub(crate) fn url(&self, file: &ServeOptions) -> String {
        self.lookup(file).servers().first().to_owned()
    }

    /// The known facts about the server.
    pub(crate) fn lookup<'a>(&'a self, file: &'a ServeOptions) -> Lookup<'a> {
        Lookup { named: &self.server, data_dir: self.data_dir.as_ref(), config: file }
    }

    /// The data directory that a flag or the file names.
    pub(crate) fn data_dir(&self, file: &ServeOptions) -> Option<PathBuf> {
        self.data_dir.clone().or_else(|| file.data_dir.clone())
    }

    /// The workspace of this server.
    pub(crate) fn workspace(&self) -> WorkspaceServer {
        WorkspaceServer::at(self.server.clone(), self.admin_token.clone(), self.data_dir.clone())
    }

    /// The server that the flags and the file name, with its administrator's token. If nothing names a
    /// server, checks whether one runs on this machine.
    pub(crate) fn warren(&self, file: &ServeOptions) -> anyhow::Result<Warren> {
        running(&self.lookup(file), self.admin_token.as_ref())
    }
}

/// A running server with the token that was given, or the one in the data directory. The latter is sent only
/// to a server on this machine, unless a flag names the directory: another server could be an attacker's.
fn running(lookup: &Lookup<'_>, given: Option<&Secret>) -> anyhow::Result<Warren> {
    let servers = lookup.servers();
    servers.check()?;
    let server = servers.first();
    let open = |token| Warren::new(server, token).map_err(|error| usage(error.into()));
    if let Some(token) = given.or(lookup.config.admin_token.as_ref()) {
        return open(Some(token));
    }
    if !lookup.may_know_token(&servers, open(None)?.is_on_this_machine()) {
        bail!(
            "the administrator's token is needed: give it with --admin-token; the one in this \
             machine's data directory is not sent to {server} unless --data-dir names it"
        );
    }
    let token = lookup.admin_token()?;
    let directory = lookup.directory()?;
    open(Some(&token.with_context(|| {
        format!(
            "the administrator's token is needed: give it with --admin-token; on the server's \
             machine it is in {}",
            token_file(&directory)
        )
    })?))
}
