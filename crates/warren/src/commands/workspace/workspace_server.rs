//! The workspace that a command speaks to, and the credential for it.

use std::{
    path::{PathBuf, absolute},
    sync::OnceLock,
};

use anyhow::{Context, anyhow};
use base::Secret;
use clap::Args;
use client::workspace::{Address, Addresses, Workspace};
use daemon::{ConfigFile, options::heading};

use crate::{
    commands::servers::{Lookup, Servers},
    exit::usage,
    system::IS_WINDOWS,
};

/// Which workspace to speak to
#[derive(Args)]
pub(crate) struct WorkspaceServer {
    /// The server [default: the one that runs here]
    ///
    /// Repeatable, or with commas: of several of one cluster, the first that can be reached.
    #[arg(long, env = "WARREN_SERVER", value_name = "URL", value_delimiter = ',',
        help_heading = heading::SERVER)]
    server: Vec<String>,
    /// A key of scope workspace:read, workspace:write or workspace:admin [default for a server on
    /// this machine: admin.token in the data directory]
    #[arg(long, env = "WARREN_TOKEN", value_name = "TOKEN", hide_env_values = true,
        hide_short_help = true, help_heading = heading::SERVER)]
    token: Option<Secret>,
    /// The server's data directory on this machine, where its admin.token is
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = heading::SERVER)]
    data_dir: Option<PathBuf>,
    /// The servers, once they are looked up.
    #[arg(skip)]
    servers: OnceLock<Servers>,
}

impl WorkspaceServer {
    /// A server with the token and the data directory that flags name.
    pub(crate) fn at(
        server: Vec<String>,
        token: Option<Secret>,
        data_dir: Option<PathBuf>,
    ) -> Self {
        Self { server, token, data_dir, servers: OnceLock::new() }
    }

    /// Connects.
    pub(crate) async fn connect(&self, file: &ConfigFile) -> anyhow::Result<Workspace> {
        Ok(Workspace::connect_to_any(&self.addresses(file)?).await?)
    }

    /// The servers, in the order in which they are tried, each with its token.
    ///
    /// # Errors
    /// When an address cannot be used, or nothing names a server and none runs here.
    pub(crate) fn addresses(&self, file: &ConfigFile) -> anyhow::Result<Addresses> {
        let lookup = self.lookup(file);
        let servers = self.servers.get_or_init(|| lookup.servers());
        servers.check()?;
        let first = self.address(servers.first(), servers, &lookup)?;
        let others = servers.urls().iter().skip(1);
        let others = others.map(|url| self.address(url, servers, &lookup));
        Ok(Addresses::new(first, others.collect::<anyhow::Result<Vec<_>>>()?))
    }

    fn lookup<'a>(&'a self, file: &'a ConfigFile) -> Lookup<'a> {
        Lookup { named: &self.server, data_dir: self.data_dir.as_ref(), config: &file.serve }
    }

    /// A server with the token that was given, or with the one that a server of this machine keeps for its
    /// administrator. A user who may not read that learns how to get a token when the server asks.
    fn address(
        &self,
        url: &str,
        servers: &Servers,
        lookup: &Lookup<'_>,
    ) -> anyhow::Result<Address> {
        let address = at(url, self.token.as_ref())?;
        let may_know = lookup.may_know_token(servers, address.is_on_this_machine());
        if self.token.is_some() || !may_know {
            return Ok(address);
        }
        match lookup.admin_token().ok().flatten() {
            Some(token) => at(url, Some(&token)),
            None => Ok(address),
        }
    }

    /// The directory to start in: the given one, or else, unless a project has one, where this
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
        let is_here = node.is_none() && self.is_here()?;
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

    /// Whether the workspace is on this machine. If there are several servers, all must be, because any may
    /// be used. Before the servers are looked up, a server that no flag names counts as here. Windows has no
    /// workspace: one that is reached at an address of this machine is in a virtual machine or behind a
    /// tunnel, and has other paths.
    pub(crate) fn is_here(&self) -> anyhow::Result<bool> {
        if IS_WINDOWS {
            return Ok(false);
        }
        if self.servers.get().map_or(self.server.is_empty(), Servers::is_ours) {
            return Ok(true);
        }
        let urls = self.servers.get().map_or(self.server.as_slice(), Servers::urls);
        urls.iter().try_fold(true, |here, url| Ok(here & at(url, None)?.is_on_this_machine()))
    }
}

fn at(url: &str, token: Option<&Secret>) -> anyhow::Result<Address> {
    Address::new(url, token).map_err(|error| usage(error.into()))
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

    fn at_url(server: &str) -> WorkspaceServer {
        let server = server.split(',').map(str::to_owned).collect();
        WorkspaceServer { server, token: None, data_dir: None, servers: OnceLock::new() }
    }

    #[test]
    fn a_directory_is_this_machines_own_or_said_in_full() {
        let (here, there) = (at_url("http://localhost:1"), at_url("http://10.0.0.1"));
        let cwd = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
        assert_eq!(here.directory(None, false).unwrap(), Some(cwd.clone()));
        assert_eq!(here.directory(Some("src"), true).unwrap(), Some(format!("{cwd}/src")));
        assert_eq!(there.directory(None, false).unwrap().as_deref(), Some("~"));
        assert_eq!(there.directory(Some("/srv"), false).unwrap().as_deref(), Some("/srv"));
        assert!(there.directory(Some("src"), false).is_err());
        for server in [here, there] {
            assert_eq!(server.directory(None, true).unwrap(), None);
            assert_eq!(server.directory(Some("~/a"), true).unwrap().as_deref(), Some("~/a"));
        }
    }

    #[test]
    fn several_servers_are_here_only_if_each_is() {
        assert!(at_url("http://localhost:1,http://[::1]:2").is_here().unwrap());
        assert!(!at_url("http://localhost:1,http://10.0.0.1").is_here().unwrap());
        assert!(at_url("http://10.0.0.1,http://").is_here().is_err());
        let none = || WorkspaceServer { server: Vec::new(), ..at_url("http://localhost") };
        assert!(none().is_here().unwrap());
        let mut file = ConfigFile::default();
        file.serve.server = Some(vec!["http://10.0.0.1".to_owned()]);
        let configured = none();
        configured.addresses(&file).unwrap();
        assert!(!configured.is_here().unwrap());
    }

    #[test]
    fn the_token_of_this_machine_is_for_its_own_servers_only() {
        let mut file = ConfigFile::default();
        file.serve.admin_token = Some(Secret::from("ours"));
        let addresses = at_url("http://localhost:1,http://10.0.0.1").addresses(&file).unwrap();
        let has_token: Vec<bool> = addresses.iter().map(Address::has_token).collect();
        assert_eq!(has_token, [true, false]);
        let data_dir = Some(PathBuf::from("/no/such/directory"));
        let named = WorkspaceServer { data_dir, ..at_url("http://10.0.0.1") };
        assert!(named.addresses(&file).unwrap().first().has_token());
    }
}
