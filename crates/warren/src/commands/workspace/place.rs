//! Which workspace a command speaks to, and what it is shown.

use std::path::{PathBuf, absolute};

use anyhow::{Context, anyhow};
use base::Secret;
use clap::Args;
use client::workspace::{Address, Workspace};
use daemon::{
    ConfigFile,
    data::{ADMIN_TOKEN, read_token},
    settings::data_dir,
};

use crate::{commands::target::DEFAULT_SERVER, exit::usage};

/// Which workspace to speak to
#[derive(Args)]
pub(crate) struct WorkspaceServer {
    /// The server [default: http://127.0.0.1:9178]
    #[arg(long, env = "WARREN_SERVER", value_name = "URL")]
    server: Option<String>,
    /// A key of scope workspace:read, workspace:write or workspace:admin [default for a server on
    /// this machine: admin.token in the data directory]
    #[arg(long, env = "WARREN_TOKEN", value_name = "TOKEN", hide_env_values = true)]
    token: Option<Secret>,
    /// The server's data directory on this machine, where its admin.token is
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl WorkspaceServer {
    /// Connects.
    pub(crate) async fn connect(&self, file: &ConfigFile) -> anyhow::Result<Workspace> {
        Ok(Workspace::connect(&self.address(file)?).await?)
    }

    /// Where it is, and what it is shown: what was said, or what a server of this machine keeps for its
    /// administrator. A user who may not read that learns how to get a token when the server asks.
    pub(crate) fn address(&self, file: &ConfigFile) -> anyhow::Result<Address> {
        let address = self.at(self.token.as_ref())?;
        let is_ours = address.is_on_this_machine() || self.data_dir.is_some();
        if self.token.is_some() || !is_ours {
            return Ok(address);
        }
        match self.admin_token(file) {
            Some(token) => self.at(Some(&token)),
            None => Ok(address),
        }
    }

    /// The directory to start in: as it was said, or else, unless a project says it, where this
    /// command runs; on another machine its user's own.
    pub(crate) fn directory(
        &self,
        said: Option<&str>,
        has_project: bool,
    ) -> anyhow::Result<Option<String>> {
        self.directory_on(None, said, has_project)
    }

    /// The same on a machine of the server's cluster, if one is named.
    pub(crate) fn directory_on(
        &self,
        node: Option<&str>,
        said: Option<&str>,
        has_project: bool,
    ) -> anyhow::Result<Option<String>> {
        let is_here = node.is_none() && self.at(None)?.is_on_this_machine();
        match said {
            Some(said) if said.starts_with(['/', '~']) => Ok(Some(said.to_owned())),
            Some(said) if is_here => Ok(Some(absolute_path(said)?)),
            Some(said) => {
                Err(usage(anyhow!("--dir {said} is on another machine: begin it with / or ~")))
            }
            None if has_project => Ok(None),
            None if is_here => Ok(Some(absolute_path(".")?)),
            None => Ok(Some("~".to_owned())),
        }
    }

    /// Whether the workspace is on this machine.
    pub(crate) fn is_here(&self) -> anyhow::Result<bool> {
        Ok(self.at(None)?.is_on_this_machine())
    }

    fn at(&self, token: Option<&Secret>) -> anyhow::Result<Address> {
        let server = self.server.as_ref().unwrap_or(&DEFAULT_SERVER);
        Address::new(server, token).map_err(|error| usage(error.into()))
    }

    fn admin_token(&self, file: &ConfigFile) -> Option<Secret> {
        if let Some(token) = &file.serve.admin_token {
            return Some(token.clone());
        }
        let given = self.data_dir.clone();
        let given = given.or_else(|| std::env::var_os("WARREN_DATA_DIR").map(PathBuf::from));
        let directory = data_dir(given.or_else(|| file.serve.data_dir.clone())).ok()?;
        read_token(&directory, ADMIN_TOKEN).ok().flatten()
    }
}

fn absolute_path(path: &str) -> anyhow::Result<String> {
    let path = absolute(path).with_context(|| format!("{path} is no directory to start in"))?;
    let text = path.to_str().map(|text| text.trim_end_matches("/."));
    text.map(str::to_owned).ok_or_else(|| {
        usage(anyhow!("{} is not UTF-8, and cannot be sent: name another", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(server: &str) -> WorkspaceServer {
        WorkspaceServer { server: Some(server.to_owned()), token: None, data_dir: None }
    }

    #[test]
    fn a_directory_is_this_machines_own_or_said_in_full() {
        let (here, there) = (place("http://localhost:1"), place("http://10.0.0.1"));
        let cwd = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
        assert_eq!(here.directory(None, false).unwrap(), Some(cwd.clone()));
        assert_eq!(here.directory(Some("src"), true).unwrap(), Some(format!("{cwd}/src")));
        assert_eq!(there.directory(None, false).unwrap().as_deref(), Some("~"));
        assert_eq!(there.directory(Some("/srv"), false).unwrap().as_deref(), Some("/srv"));
        assert!(there.directory(Some("src"), false).is_err());
        for place in [here, there] {
            assert_eq!(place.directory(None, true).unwrap(), None);
            assert_eq!(place.directory(Some("~/a"), true).unwrap().as_deref(), Some("~/a"));
        }
    }
}
