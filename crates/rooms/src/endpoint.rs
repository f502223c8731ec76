//! The endpoints of participants that the server calls.
//!
//! A client that may name any address could make the server call the server's own neighbours. So by
//! default the server calls only the address that the join came from. It resolves the endpoint once
//! and then calls that address alone.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    time::Duration,
};

use protocol::room::limits::MAX_ENDPOINT;
use url::{Host, Url};

use crate::{error::RoomError, machine_address::may_be};

/// The timeout of resolving an endpoint.
const RESOLVING: Duration = Duration::from_secs(5);

/// The advice in a refusal.
const INSTEAD: &str = "join with `warren room join`, which needs no address that this server calls";

/// The participants whose endpoints the server calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Endpoints {
    /// None.
    Off,
    /// Those at the address that the join came from.
    #[default]
    Own,
    /// Every participant's.
    Any,
}

/// An endpoint that may be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedEndpoint {
    /// Its URL, as it was given.
    pub url: String,
    /// The address that the URL resolved to when it was given; only this one is called.
    pub address: SocketAddr,
}

impl Endpoints {
    /// Resolves an endpoint, once. `from` must be the client's address: behind a reverse proxy that
    /// is the proxy's address, so this must not be called there. `own` is where this server
    /// listens: an endpoint that leads back to this server would make it call itself for ever.
    ///
    /// # Errors
    /// [`RoomError::Invalid`] when it is not a URL of this sort, cannot be resolved, or must not be
    /// called; the text says what to do instead.
    pub async fn reach(
        self,
        url: &str,
        from: IpAddr,
        own: Option<SocketAddr>,
    ) -> Result<ResolvedEndpoint, RoomError> {
        if self == Self::Off {
            return refuse(format!("this server calls no participant's endpoint: {INSTEAD}"));
        }
        let parsed = parse(url)?;
        let addresses = resolve(&parsed).await?;
        let address = self.choose(&addresses, from)?;
        if own.is_some_and(|own| leads_to(address, own)) {
            return refuse(format!(
                "`endpoint` is this server itself ({address}), which would ask itself for ever: \
                 give the address of a model server"
            ));
        }
        Ok(ResolvedEndpoint { url: url.to_owned(), address })
    }

    fn choose(self, addresses: &[SocketAddr], from: IpAddr) -> Result<SocketAddr, RoomError> {
        let from = from.to_canonical();
        let own = |address: &SocketAddr| address.ip().to_canonical() == from;
        let found = match self {
            Self::Off => None,
            Self::Own => addresses.iter().find(|address| own(address)),
            Self::Any => addresses.iter().find(|address| own(address) || may_be(address.ip())),
        };
        found.copied().ok_or_else(|| RoomError::Invalid(self.refusal(from)))
    }

    fn refusal(self, from: IpAddr) -> String {
        let wanted = match self {
            Self::Off | Self::Own => format!("at {from}, the address that you join from"),
            Self::Any => {
                "at an address of a machine, not of a link, a group or a service of a cloud"
                    .to_owned()
            }
        };
        format!("`endpoint` must be {wanted}: give such a one, or {INSTEAD}")
    }
}

fn refuse<T>(words: String) -> Result<T, RoomError> {
    Err(RoomError::Invalid(words))
}

fn parse(text: &str) -> Result<Url, RoomError> {
    if text.len() > MAX_ENDPOINT {
        return refuse(format!("`endpoint` is longer than {MAX_ENDPOINT} bytes"));
    }
    let url = Url::parse(text).map_err(|error| {
        RoomError::Invalid(format!("`endpoint` is no URL ({error}): give one as http://HOST:PORT"))
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return refuse("`endpoint` must begin with http:// or https://".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("`endpoint` must not hold a user or a password".to_owned());
    }
    if url.fragment().is_some() {
        return refuse("`endpoint` must not have a part after `#`".to_owned());
    }
    Ok(url)
}

async fn resolve(url: &Url) -> Result<Vec<SocketAddr>, RoomError> {
    let port = url.port_or_known_default().unwrap_or(80);
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => return Ok(vec![(address, port).into()]),
        Some(Host::Domain(name)) => name,
        None => return refuse("`endpoint` names no host".to_owned()),
    };
    match tokio::time::timeout(RESOLVING, tokio::net::lookup_host((name, port))).await {
        Ok(Ok(addresses)) => Ok(addresses.collect()),
        Ok(Err(error)) => refuse(format!(
            "the address of `endpoint` was not found by this server ({error}): {INSTEAD}"
        )),
        Err(_) => refuse(format!(
            "the address of `endpoint` was not found by this server within 5 s: {INSTEAD}"
        )),
    }
}

/// Whether this server, listening at `listens`, is reached at `address`. A server that listens on
/// the wildcard address is reached at every address of this machine, that is, at every address that
/// a socket can be bound to.
fn leads_to(address: SocketAddr, listens: SocketAddr) -> bool {
    let (ip, here) = (address.ip().to_canonical(), listens.ip().to_canonical());
    let is_ours = || ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok();
    address.port() == listens.port() && (ip == here || (here.is_unspecified() && is_ours()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 1, 7));

    async fn reach(rule: Endpoints, url: &str) -> Result<SocketAddr, String> {
        rule.reach(url, HERE, None).await.map(|reached| reached.address).map_err(|e| e.to_string())
    }

    #[tokio::test]
    async fn by_default_only_the_own_address_is_called() {
        let own = "192.168.1.7:11434".parse().unwrap();
        assert_eq!(reach(Endpoints::Own, "http://192.168.1.7:11434").await, Ok(own));
        assert!(reach(Endpoints::Own, "http://[::ffff:192.168.1.7]:1/v1").await.is_ok());
        for url in ["http://192.168.1.8:80", "http://127.0.0.1:9178", "http://169.254.169.254/"] {
            let error = reach(Endpoints::Own, url).await.unwrap_err();
            assert!(error.contains("192.168.1.7") && error.contains("warren room join"), "{error}");
        }
    }

    #[tokio::test]
    async fn any_is_any_machines_but_no_links_and_groups() {
        for url in ["http://10.0.0.9:80", "https://[2001:db8::1]/", "http://127.0.0.1:1"] {
            assert!(reach(Endpoints::Any, url).await.is_ok(), "{url}");
        }
        let refused = [
            "http://169.254.169.254/latest",
            "http://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://0.0.0.0:80",
            "http://0.1.2.3",
            "http://[::]:80",
            "http://224.0.0.1",
            "http://255.255.255.255",
            "http://[ff02::1]",
            "http://2852039166/", // 169.254.169.254 as one number
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[2002:a9fe:a9fe::]/",
            "http://100.100.100.200/",
        ];
        for url in refused {
            assert!(reach(Endpoints::Any, url).await.is_err(), "{url}");
        }
        let link = "169.254.7.7".parse().unwrap();
        assert!(Endpoints::Any.reach("http://169.254.7.7:1", link, None).await.is_ok(), "its own");
    }

    #[tokio::test]
    async fn the_servers_own_address_is_nobodys_endpoint() {
        let from = [127, 0, 0, 1].into();
        let reach = async |url: &str, own: &str| {
            let own = Some(own.parse().unwrap());
            Endpoints::Any.reach(url, from, own).await.map_err(|error| error.to_string())
        };
        for own in ["127.0.0.1:8080", "0.0.0.0:8080", "[::]:8080", "[::ffff:127.0.0.1]:8080"] {
            for url in ["http://127.0.0.1:8080/rooms/AB", "http://[::ffff:127.0.0.1]:8080"] {
                let error = reach(url, own).await.unwrap_err();
                assert!(error.contains("this server itself"), "{url} at {own}: {error}");
            }
            assert!(reach("http://127.0.0.1:8081", own).await.is_ok(), "another port");
            assert!(reach("http://192.0.2.1:8080", own).await.is_ok(), "another machine");
        }
        assert!(reach("http://127.0.0.2:8080", "0.0.0.0:8080").await.is_err());
        assert!(reach("http://127.0.0.2:8080", "127.0.0.1:8080").await.is_ok());
    }

    #[tokio::test]
    async fn nothing_is_called_where_it_is_off_and_nothing_that_is_no_web_address() {
        assert!(reach(Endpoints::Off, "http://192.168.1.7").await.unwrap_err().contains("no part"));
        let bad = [
            "",
            "nonsense",
            "ftp://192.168.1.7",
            "file:///etc/passwd",
            "http://user:pw@192.168.1.7",
            "http://user@192.168.1.7",
            "http://192.168.1.7/#part",
            "unix:/run/docker.sock",
        ];
        for url in bad {
            let error = reach(Endpoints::Any, url).await.unwrap_err();
            assert!(error.contains("`endpoint`"), "{url}: {error}");
        }
        let long = format!("http://192.168.1.7/{}", "x".repeat(MAX_ENDPOINT));
        assert!(reach(Endpoints::Any, &long).await.unwrap_err().contains("longer"));
    }

    #[tokio::test]
    async fn a_name_is_resolved_and_stays_what_it_was() {
        let from = [127, 0, 0, 1].into();
        let reached = Endpoints::Own.reach("http://localhost:8080/v1", from, None).await.unwrap();
        assert_eq!(reached.address, "127.0.0.1:8080".parse().unwrap());
        assert_eq!(reached.url, "http://localhost:8080/v1");
        let error = reach(Endpoints::Any, "http://no-such-host.invalid").await.unwrap_err();
        assert!(error.contains("not found"), "{error}");
    }
}
