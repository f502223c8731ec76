//! Where this server is, for the codes of its invitations and its proofs.

use std::{
    net::{IpAddr, SocketAddr},
    sync::OnceLock,
};

use anyhow::Context;
use api::Whereabouts;
use base::{Fingerprint, Live};
use protocol::invitation::{Place, ServerId};

use crate::data::{DataDir, SERVER_ID};

/// The most IPv4 addresses in a code. A code has an IPv6 address only if there is none of IPv4: IPv6 addresses are
/// long.
const MAX_V4: usize = 2;

/// This server's id and whereabouts.
pub(crate) struct Here {
    id: ServerId,
    fingerprint: Live<Option<Fingerprint>>,
    listens: OnceLock<SocketAddr>,
}

impl Here {
    /// The server of a data directory. Its id is made at the first start.
    pub(crate) fn open(data: &DataDir, fingerprint: Option<Fingerprint>) -> anyhow::Result<Self> {
        let stored = data.token(SERVER_ID, "")?;
        let id = stored.expose().get(..2 * ServerId::BYTES).and_then(|id| id.parse().ok());
        let id = id.with_context(|| {
            format!("{SERVER_ID} in the data directory is not as Warren wrote it: remove it")
        })?;
        Ok(Self { id, fingerprint: Live::new(fingerprint), listens: OnceLock::new() })
    }

    /// Sets the address that the server listens at. Called once.
    pub(crate) fn listening(&self, address: SocketAddr) {
        let _set_before = self.listens.set(address);
    }

    /// Sets the fingerprint of the certificate that the server shows from now on.
    pub(crate) fn shows(&self, fingerprint: Option<Fingerprint>) {
        self.fingerprint.set(fingerprint);
    }
}

impl Whereabouts for Here {
    fn id(&self) -> ServerId {
        self.id
    }

    fn name(&self) -> String {
        hardware::host_name()
    }

    fn place(&self) -> Place {
        let listens = self.listens.get();
        let addresses = listens.map(|at| addresses(at.ip(), hardware::preferred_addresses()));
        Place {
            port: listens.map_or(0, SocketAddr::port),
            addresses: addresses.unwrap_or_default(),
            fingerprint: self.fingerprint.copied(),
            url: None,
        }
    }

    fn is_own(&self, address: SocketAddr) -> bool {
        let is_at = |listens: &SocketAddr| {
            let ip = address.ip().to_canonical();
            let is_ours = || {
                takes(listens.ip(), ip) && (ip.is_loopback() || hardware::addresses().contains(&ip))
            };
            address.port() == listens.port() && (listens.ip() == ip || is_ours())
        };
        self.listens.get().is_some_and(is_at)
    }
}

/// The addresses for a code of a server that is bound to `listens`, on a machine with the addresses `own`.
fn addresses(listens: IpAddr, own: Vec<IpAddr>) -> Vec<IpAddr> {
    if !listens.is_unspecified() {
        return vec![listens];
    }
    let taken: Vec<IpAddr> = own.into_iter().filter(|ip| takes(listens, *ip)).collect();
    let v4: Vec<IpAddr> = taken.iter().copied().filter(IpAddr::is_ipv4).take(MAX_V4).collect();
    if v4.is_empty() { taken.into_iter().take(1).collect() } else { v4 }
}

/// Whether a socket that is bound to `listens` takes connections to this address of the machine.
fn takes(listens: IpAddr, address: IpAddr) -> bool {
    // A socket on `::` takes IPv4, too.
    listens.is_unspecified() && (listens.is_ipv6() || address.is_ipv4())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_code_names_the_addresses_that_the_server_takes_and_few_of_them() {
        let own = ["2001:db8::7", "192.0.2.1", "192.0.2.2", "192.0.2.3"].map(ip);
        let of = |listens, own: &[IpAddr]| addresses(ip(listens), own.to_vec());
        assert_eq!(of("192.0.2.9", &own), [ip("192.0.2.9")]);
        assert_eq!(of("0.0.0.0", &own), [ip("192.0.2.1"), ip("192.0.2.2")]);
        assert_eq!(of("::", &own), [ip("192.0.2.1"), ip("192.0.2.2")]);
        assert_eq!(of("::", &own[..1]), [ip("2001:db8::7")]);
        assert!(of("0.0.0.0", &own[..1]).is_empty());
    }

    #[test]
    fn only_the_addresses_that_it_listens_at_are_its_own() {
        let here = |listens: &str| {
            let (id, fingerprint) = (ServerId::new([0; 8]), Live::default());
            let here = Here { id, fingerprint, listens: OnceLock::new() };
            here.listening(listens.parse().unwrap());
            here
        };
        let is_own = |listens, address: &str| here(listens).is_own(address.parse().unwrap());
        assert!(is_own("127.0.0.1:7", "127.0.0.1:7"));
        assert!(!is_own("127.0.0.1:7", "127.0.0.1:8"));
        assert!(!is_own("127.0.0.1:7", "127.0.0.2:7"));
        assert!(is_own("0.0.0.0:7", "127.0.0.2:7"));
        assert!(!is_own("0.0.0.0:7", "192.0.2.1:7"), "of a network for documentation");
    }
}
