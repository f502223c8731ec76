//! The settings of the workspace cluster: their defaults and checks.

use std::net::SocketAddr;

use anyhow::bail;

use crate::options::ClusterOptions;

/// The settings of the workspace cluster.
#[derive(Debug, Clone)]
pub struct ClusterSettings {
    /// The address that the other members connect to.
    pub listen: SocketAddr,
    /// The settings of the member, without its addresses.
    pub member: cluster::Settings,
}

/// The longest name of a machine, in bytes.
const MAX_NAME: usize = 128;

impl ClusterSettings {
    /// Fills in defaults and checks the options. `clients`: the address that clients connect to.
    ///
    /// # Errors
    /// When a value is invalid.
    pub fn new(options: ClusterOptions, clients: SocketAddr) -> anyhow::Result<Self> {
        let name = options.name.unwrap_or_else(hardware::host_name);
        if name.trim().is_empty() || name.len() > MAX_NAME {
            bail!("node-name must have 1 to {MAX_NAME} bytes");
        }
        Ok(Self {
            listen: options.peer_listen.unwrap_or_else(|| one_higher(clients)),
            member: cluster::Settings {
                token: super::secret(options.token, "cluster-token")?,
                peers: options.peers.unwrap_or_default(),
                discovery: !options.no_peer_discovery.unwrap_or(false),
                allow_plain: options.allow_plain_peers.unwrap_or(false),
                name,
                ..<_>::default()
            },
        })
    }
}

/// The same address, one port higher. Port 0, for which the system chooses a port, stays 0; the highest port becomes
/// the one below it.
fn one_higher(clients: SocketAddr) -> SocketAddr {
    let port = match clients.port() {
        0 => 0,
        port => port.checked_add(1).unwrap_or(port - 1),
    };
    SocketAddr::new(clients.ip(), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str, clients: &str) -> anyhow::Result<ClusterSettings> {
        ClusterSettings::new(toml::from_str(file)?, clients.parse().unwrap())
    }

    #[test]
    fn members_connect_one_port_higher_than_clients() {
        let listen = |clients| of("", clients).unwrap().listen.to_string();
        assert_eq!(listen("127.0.0.1:9178"), "127.0.0.1:9179");
        assert_eq!(listen("[::]:65535"), "[::]:65534");
        assert_eq!(listen("0.0.0.0:0"), "0.0.0.0:0");
    }

    #[test]
    fn every_key_of_the_file_is_used() {
        let text = "peers = ['box:9179']\nno_peer_discovery = true\ntoken = 't'\n\
                    allow_plain_peers = true\npeer_listen = '0.0.0.0:7'\nname = 'lab'";
        let read = of(text, "127.0.0.1:1").unwrap();
        assert_eq!(
            (read.member.peers, read.member.discovery, read.member.allow_plain),
            (vec!["box:9179".to_owned()], false, true)
        );
        assert_eq!((read.listen.port(), read.member.name.as_str()), (7, "lab"));
        assert_eq!(read.member.token.unwrap().expose(), "t");
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        for (text, name) in [("token = ' '", "cluster-token"), ("name = ''", "node-name")] {
            let error = format!("{:#}", of(text, "127.0.0.1:1").unwrap_err());
            assert!(error.contains(name), "{text}: {error}");
        }
    }
}
