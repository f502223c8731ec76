//! Whom the administration commands speak to: a running server, or a stopped one's data directory.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use anyhow::Context;
use base::Secret;
use clap::Args;
use client::Warren;
use daemon::{
    ServeOptions, Stopped,
    data::{ADMIN_TOKEN, read_token},
    settings::data_dir,
};

use crate::exit::usage;

/// Where a server is when nobody says so.
pub(super) static DEFAULT_SERVER: LazyLock<String> =
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
        let token = token(self.admin_token.as_ref(), self.data_dir.as_ref(), file)?;
        Ok(Chosen::Running(Box::new(running(self.server.as_ref(), &token)?)))
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
    /// The server, by what was said and what the file says. Connects to nothing yet.
    pub(crate) fn warren(&self, file: &ServeOptions) -> anyhow::Result<Warren> {
        let token = token(self.admin_token.as_ref(), self.data_dir.as_ref(), file)?;
        running(self.server.as_ref(), &token)
    }
}

fn running(server: Option<&String>, token: &Secret) -> anyhow::Result<Warren> {
    let server = server.unwrap_or(&DEFAULT_SERVER);
    Warren::new(server, Some(token)).map_err(|error| usage(error.into()))
}

/// What the server is shown: what was said, or what is kept in the data directory.
fn token(
    given: Option<&Secret>,
    directory: Option<&PathBuf>,
    file: &ServeOptions,
) -> anyhow::Result<Secret> {
    if let Some(token) = given.or(file.admin_token.as_ref()) {
        return Ok(token.clone());
    }
    let from_environment = || std::env::var_os("WARREN_DATA_DIR").map(PathBuf::from);
    let directory = directory.cloned().or_else(from_environment);
    let directory = data_dir(directory.or_else(|| file.data_dir.clone()))?;
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
