//! The server that a command speaks to, and the address of a server of this machine. Every command looks in the same
//! places, in this order: its flag and the environment, the configuration, the data directory of a server that runs here,
//! the usual address.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    sync::LazyLock,
    time::Duration,
};

use base::Secret;
use client::ClientError;
use daemon::{
    ServeOptions, ServerFile,
    data::{ADMIN_TOKEN, read_token},
    settings::{PORT, data_dir},
};

/// The address of the server if nothing names one and none runs here.
pub(crate) static DEFAULT_SERVER: LazyLock<String> =
    LazyLock::new(|| format!("http://127.0.0.1:{PORT}"));

/// The deadline of a connection to the usual address, which is on this machine.
const KNOCK: Duration = Duration::from_millis(500);

/// A command's knowledge of its server.
pub(crate) struct Lookup<'a> {
    /// The servers that the flag or the environment names.
    pub(crate) named: &'a [String],
    /// The data directory, if a flag names it.
    pub(crate) data_dir: Option<&'a PathBuf>,
    pub(crate) config: &'a ServeOptions,
}

/// One or several servers, and the source of their addresses. Not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Servers {
    urls: Vec<String>,
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// A flag, the environment or the configuration.
    Named,
    /// The server that holds a data directory of this machine.
    DataDir,
    /// The usual address: nothing names a server, and none is known to run here.
    Usual,
}

impl Lookup<'_> {
    /// The servers. Connects to nothing.
    pub(crate) fn servers(&self) -> Servers {
        let configured = self.config.server.as_deref().unwrap_or_default();
        let named = [self.named, configured].into_iter().find(|urls| !urls.is_empty());
        if let Some(urls) = named {
            return Servers { urls: urls.to_vec(), source: Source::Named };
        }
        match self.running() {
            Some(file) => Servers::running(file),
            None => Servers { urls: vec![self.usual()], source: Source::Usual },
        }
    }

    /// The server that runs with the data directory, even if another one is named.
    pub(crate) fn running(&self) -> Option<ServerFile> {
        ServerFile::of(&self.directory().ok()?)
    }

    /// The data directory of this machine's server.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        let from_environment = || std::env::var_os("WARREN_DATA_DIR").map(PathBuf::from);
        let directory = self.data_dir.cloned().or_else(from_environment);
        data_dir(directory.or_else(|| self.config.data_dir.clone()))
    }

    /// The administrator's token of this machine's server: of the configuration, or in the data directory.
    ///
    /// # Errors
    /// When its file cannot be read.
    pub(crate) fn admin_token(&self) -> anyhow::Result<Option<Secret>> {
        match &self.config.admin_token {
            Some(token) => Ok(Some(token.clone())),
            None => read_token(&self.directory()?, ADMIN_TOKEN),
        }
    }

    /// Whether the token of this machine's server may be sent to these servers: another server could be an
    /// attacker's. `is_on_this_machine`: whether their address is one of this machine.
    pub(crate) fn may_know_token(&self, servers: &Servers, is_on_this_machine: bool) -> bool {
        is_on_this_machine || self.data_dir.is_some() || servers.source == Source::DataDir
    }

    /// The address at which a server of this configuration listens.
    fn usual(&self) -> String {
        let is_own = |at: &&SocketAddr| at.ip().is_loopback() && at.port() != 0;
        match self.config.listen.as_ref().filter(is_own) {
            Some(at) if self.config.tls_cert.is_none() => format!("http://{at}"),
            _ => DEFAULT_SERVER.clone(),
        }
    }
}

impl Servers {
    /// The server that wrote this file. Its certificate is trusted from now on, since it is that of this
    /// user's own server.
    fn running(file: ServerFile) -> Self {
        if let Some(certificate) = file.certificate {
            client::trust_own(certificate);
        }
        let urls = file.urls.into_iter().take(1).collect();
        Self { urls, source: Source::DataDir }
    }

    pub(crate) fn first(&self) -> &str {
        self.urls.first().unwrap_or(&DEFAULT_SERVER)
    }

    pub(crate) fn urls(&self) -> &[String] {
        &self.urls
    }

    /// Whether they certainly run on this machine, whatever their addresses are.
    pub(crate) fn is_ours(&self) -> bool {
        self.source != Source::Named
    }

    /// Refuses the usual address if nobody listens there.
    ///
    /// # Errors
    /// [`ClientError::NoServerHere`].
    pub(crate) fn check(&self) -> Result<(), ClientError> {
        match self.source {
            Source::Usual if !answers(self.first()) => Err(ClientError::NoServerHere),
            _ => Ok(()),
        }
    }
}

/// Whether a server listens at a URL. If its host is a name, or it has TLS, nothing is tried, and it counts
/// as answering.
fn answers(url: &str) -> bool {
    let address: Option<SocketAddr> =
        url.strip_prefix("http://").and_then(|place| place.parse().ok());
    address.is_none_or(|address| TcpStream::connect_timeout(&address, KNOCK).is_ok())
}

/// The file of the administrator's token, for messages.
pub(crate) fn token_file(directory: &Path) -> String {
    directory.join(ADMIN_TOKEN).display().to_string()
}

/// The address at which a server with these settings listens.
pub(super) fn address(options: &ServeOptions) -> SocketAddr {
    options.listen.unwrap_or((Ipv4Addr::LOCALHOST, PORT).into())
}

/// The URL by which this machine reaches a server with these settings.
pub(super) fn local_url(options: &ServeOptions) -> String {
    let listen = address(options);
    let here = match listen.ip() {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        // A server at `::` listens on IPv4 as well.
        IpAddr::V6(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        address => address,
    };
    url(options, SocketAddr::new(here, listen.port()))
}

/// The URL of a server with these settings at an address.
pub(super) fn url(options: &ServeOptions, at: SocketAddr) -> String {
    let scheme = if options.tls_cert.is_some() { "https" } else { "http" };
    format!("{scheme}://{at}")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn config(server: &[&str]) -> ServeOptions {
        let server = server.iter().map(|&url| url.to_owned()).collect();
        ServeOptions { server: Some(server), ..ServeOptions::default() }
    }

    #[test]
    fn a_flag_wins_over_the_configuration_and_that_over_the_data_directory() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = Some(directory.path().to_path_buf());
        let named = ["http://a".to_owned()];
        let configured = config(&["http://b", "http://c"]);
        let lookup = Lookup { named: &named, data_dir: data_dir.as_ref(), config: &configured };
        assert_eq!(lookup.servers().urls(), named);
        let lookup = Lookup { named: &[], ..lookup };
        assert_eq!(lookup.servers().urls(), ["http://b", "http://c"]);
        let nothing = ServeOptions::default();
        let lookup = Lookup { config: &nothing, ..lookup };
        let usual = lookup.servers();
        assert_eq!((usual.first(), usual.is_ours()), (DEFAULT_SERVER.as_str(), true));
    }

    #[test]
    fn without_a_server_the_one_of_this_configuration_is_meant() {
        let usual = |listen: &str| {
            let listen = Some(listen.parse().unwrap());
            let config = ServeOptions { listen, ..ServeOptions::default() };
            Lookup { named: &[], data_dir: None, config: &config }.usual()
        };
        assert_eq!(usual("127.0.0.1:7001"), "http://127.0.0.1:7001");
        assert_eq!(usual("127.0.0.1:0"), *DEFAULT_SERVER, "the system chose its port");
        assert_eq!(usual("10.0.0.7:7001"), *DEFAULT_SERVER);
    }

    #[test]
    fn a_usual_address_where_nobody_listens_is_said_to_have_no_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let urls = vec![format!("http://{}", listener.local_addr().unwrap())];
        let usual = Servers { urls, source: Source::Usual };
        assert_eq!(usual.check(), Ok(()));
        drop(listener);
        assert_eq!(usual.check(), Err(ClientError::NoServerHere));
        let named = Servers { source: Source::Named, ..usual };
        assert_eq!(named.check(), Ok(()), "its own error says more");
    }

    #[test]
    fn the_token_goes_to_this_machines_server_only() {
        let nothing = ServeOptions::default();
        let lookup = Lookup { named: &[], data_dir: None, config: &nothing };
        let of = |source| Servers { urls: vec!["http://10.0.0.7".to_owned()], source };
        assert!(lookup.may_know_token(&of(Source::DataDir), false));
        assert!(!lookup.may_know_token(&of(Source::Named), false));
        assert!(lookup.may_know_token(&of(Source::Named), true));
        let directory = PathBuf::from("/d");
        let with_directory = Lookup { data_dir: Some(&directory), ..lookup };
        assert!(with_directory.may_know_token(&of(Source::Named), false));
    }

    #[test]
    fn an_address_of_all_interfaces_is_reached_by_loopback() {
        let url = |listen: &str| {
            let listen = Some(listen.parse().unwrap());
            local_url(&ServeOptions { listen, ..ServeOptions::default() })
        };
        assert_eq!(url("0.0.0.0:7"), "http://127.0.0.1:7");
        assert_eq!(url("[::]:7"), "http://127.0.0.1:7");
        assert_eq!(url("[::1]:7"), "http://[::1]:7");
        assert_eq!(local_url(&ServeOptions::default()), "http://127.0.0.1:9178");
        let tls = ServeOptions { tls_cert: Some("c".into()), ..ServeOptions::default() };
        assert_eq!(local_url(&tls), "https://127.0.0.1:9178");
    }
}
