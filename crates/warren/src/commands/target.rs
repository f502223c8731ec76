//! The server that an administration command works on: a running one, or a stopped one's data directory.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use anyhow::{Context, bail};
use base::Secret;
use clap::Args;
use client::Warren;
use daemon::{
    OfflineServer, ServeOptions,
    data::{ADMIN_TOKEN, read_token},
    settings::data_dir,
};

use crate::exit::usage;

/// The address of the server if no flag or setting names one.
pub(crate) static DEFAULT_SERVER: LazyLock<String> =
    LazyLock::new(|| format!("http://127.0.0.1:{}", daemon::settings::PORT));

/// The server to work on
#[derive(Args)]
pub(crate) struct Target {
    /// The server [default: http://127.0.0.1:9178]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL")]
    server: Option<String>,
    /// Its administrator's token, or a key of scope admin [default: admin.token in the data
    /// directory]
    #[arg(long, env = "WARREN_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    admin_token: Option<Secret>,
    /// The data directory of a stopped server on this machine, to work on without it; with
    /// --server, only where its admin.token is
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
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

    /// The same, for commands that may come before the first start of a server.
    pub(crate) fn choose_or_make(&self, file: &ServeOptions) -> anyhow::Result<AdminTarget> {
        self.choose_by(file, OfflineServer::open_or_make)
    }

    fn choose_by(
        &self,
        file: &ServeOptions,
        open: impl FnOnce(&Path) -> anyhow::Result<OfflineServer>,
    ) -> anyhow::Result<AdminTarget> {
        if let (None, Some(directory)) = (&self.server, &self.data_dir) {
            return Ok(AdminTarget::Offline(Box::new(open(directory)?)));
        }
        let file = TokenFile { directory: self.data_dir.as_ref(), config: file };
        let running = running(self.server.as_ref(), self.admin_token.as_ref(), &file)?;
        Ok(AdminTarget::Running(Box::new(running)))
    }
}

/// The running server to ask
#[derive(Args)]
pub(crate) struct RunningServer {
    /// The server [default: http://127.0.0.1:9178]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL")]
    server: Option<String>,
    /// Its administrator's token, or a key of scope admin [default: admin.token in the data
    /// directory]
    #[arg(long, env = "WARREN_ADMIN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    admin_token: Option<Secret>,
    /// The server's data directory on this machine, where its admin.token is
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl RunningServer {
    /// Whether a flag or the environment names the server.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some()
    }

    pub(crate) fn url(&self) -> &str {
        self.server.as_ref().unwrap_or(&DEFAULT_SERVER)
    }

    pub(crate) fn directory(&self, file: &ServeOptions) -> anyhow::Result<PathBuf> {
        TokenFile { directory: self.data_dir.as_ref(), config: file }.path()
    }

    /// The server that the flags and the file name. Connects to nothing yet.
    pub(crate) fn warren(&self, file: &ServeOptions) -> anyhow::Result<Warren> {
        let file = TokenFile { directory: self.data_dir.as_ref(), config: file };
        running(self.server.as_ref(), self.admin_token.as_ref(), &file)
    }
}

/// The file of the administrator's token on this machine.
struct TokenFile<'a> {
    /// The data directory, if a flag names it.
    directory: Option<&'a PathBuf>,
    config: &'a ServeOptions,
}

/// A running server with the token that was given, or the one in the data directory. The latter is sent only
/// to a server on this machine, unless a flag names the directory: another server could be an attacker's.
fn running(
    server: Option<&String>,
    given: Option<&Secret>,
    file: &TokenFile<'_>,
) -> anyhow::Result<Warren> {
    let server = server.unwrap_or(&DEFAULT_SERVER);
    let open = |token| Warren::new(server, token).map_err(|error| usage(error.into()));
    if let Some(token) = given.or(file.config.admin_token.as_ref()) {
        return open(Some(token));
    }
    if file.directory.is_none() && !open(None)?.is_on_this_machine() {
        bail!(
            "the administrator's token is needed: give it with --admin-token; the one in this \
             machine's data directory is not sent to {server} unless --data-dir names it"
        );
    }
    open(Some(&file.token()?))
}

impl TokenFile<'_> {
    fn path(&self) -> anyhow::Result<PathBuf> {
        let from_environment = || std::env::var_os("WARREN_DATA_DIR").map(PathBuf::from);
        let directory = self.directory.cloned().or_else(from_environment);
        data_dir(directory.or_else(|| self.config.data_dir.clone()))
    }

    fn token(&self) -> anyhow::Result<Secret> {
        let directory = self.path()?;
        let token = read_token(&directory, ADMIN_TOKEN)?;
        let shown = directory.join(ADMIN_TOKEN);
        token.with_context(|| {
            format!(
                "the administrator's token is needed: give it with --admin-token; on the server's \
                 machine it is in {}",
                shown.display()
            )
        })
    }
}
