//! Whom the administration commands speak to: a running server, or a stopped one's data directory.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use anyhow::{Context, bail};
use base::Secret;
use clap::Args;
use client::Warren;
use daemon::{
    ServeOptions, Stopped,
    data::{ADMIN_TOKEN, read_token},
    settings::data_dir,
};

use crate::exit::usage;

/// The address of a server that no flag or setting names.
pub(crate) static DEFAULT_SERVER: LazyLock<String> =
    LazyLock::new(|| format!("http://127.0.0.1:{}", daemon::settings::PORT));

/// Whom to speak to
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

/// Whom a command speaks to.
pub(crate) enum Chosen {
    /// A running server.
    Running(Box<Warren>),
    /// A server that is not running.
    Stopped(Box<Stopped>),
}

impl Target {
    /// The one to speak to, by what was said and what the file says.
    pub(crate) fn choose(&self, file: &ServeOptions) -> anyhow::Result<Chosen> {
        self.choose_by(file, Stopped::open)
    }

    /// The same, for what may be done before a server has ever run.
    pub(crate) fn choose_or_make(&self, file: &ServeOptions) -> anyhow::Result<Chosen> {
        self.choose_by(file, Stopped::open_or_make)
    }

    fn choose_by(
        &self,
        file: &ServeOptions,
        open: impl FnOnce(&Path) -> anyhow::Result<Stopped>,
    ) -> anyhow::Result<Chosen> {
        if let (None, Some(directory)) = (&self.server, &self.data_dir) {
            return Ok(Chosen::Stopped(Box::new(open(directory)?)));
        }
        let kept = Kept { directory: self.data_dir.as_ref(), file };
        let running = running(self.server.as_ref(), self.admin_token.as_ref(), &kept)?;
        Ok(Chosen::Running(Box::new(running)))
    }
}

/// The running server to speak to
#[derive(Args)]
pub(crate) struct Running {
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

impl Running {
    /// Whether somebody said which server.
    pub(crate) fn is_named(&self) -> bool {
        self.server.is_some()
    }

    /// The server's URL, by what was said.
    pub(crate) fn url(&self) -> &str {
        self.server.as_ref().unwrap_or(&DEFAULT_SERVER)
    }

    /// The data directory, by what was said and what the file says.
    pub(crate) fn directory(&self, file: &ServeOptions) -> anyhow::Result<PathBuf> {
        Kept { directory: self.data_dir.as_ref(), file }.path()
    }

    /// The server, by what was said and what the file says. Connects to nothing yet.
    pub(crate) fn warren(&self, file: &ServeOptions) -> anyhow::Result<Warren> {
        let kept = Kept { directory: self.data_dir.as_ref(), file };
        running(self.server.as_ref(), self.admin_token.as_ref(), &kept)
    }
}

/// Where this machine's own server keeps its token.
struct Kept<'a> {
    /// The data directory, if somebody named it.
    directory: Option<&'a PathBuf>,
    file: &'a ServeOptions,
}

/// The server, shown what was said, or what is kept in the data directory: that of this machine is
/// for a server on this machine, unless somebody names the directory.
fn running(
    server: Option<&String>,
    given: Option<&Secret>,
    kept: &Kept<'_>,
) -> anyhow::Result<Warren> {
    let server = server.unwrap_or(&DEFAULT_SERVER);
    let open = |token| Warren::new(server, token).map_err(|error| usage(error.into()));
    if let Some(token) = given.or(kept.file.admin_token.as_ref()) {
        return open(Some(token));
    }
    if kept.directory.is_none() && !open(None)?.is_on_this_machine() {
        bail!(
            "the administrator's token is needed: give it with --admin-token; the one in this \
             machine's data directory is not sent to {server} unless --data-dir names it"
        );
    }
    open(Some(&kept.token()?))
}

impl Kept<'_> {
    fn path(&self) -> anyhow::Result<PathBuf> {
        let from_environment = || std::env::var_os("WARREN_DATA_DIR").map(PathBuf::from);
        let directory = self.directory.cloned().or_else(from_environment);
        data_dir(directory.or_else(|| self.file.data_dir.clone()))
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
