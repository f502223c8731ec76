//! Proxies whose word is taken on where their clients are.
//!
//! A proxy appends the address of each client to `X-Forwarded-For` or `Forwarded` (RFC 7239), after what
//! the client itself sent. So the headers are read from their right end, and only up to the first address
//! that is no trusted proxy's. What stands before it may be invented.

use std::{fmt, net::IpAddr, str::FromStr};

use base::ClientAddress;
use http::{HeaderMap, header};
use serde::Deserialize;

use crate::local::is_forwarded;

const X_FORWARDED_FOR: &str = "x-forwarded-for";
const X_FORWARDED_PROTO: &str = "x-forwarded-proto";

/// The most proxies in a row.
const MOST_HOPS: usize = 32;

/// The addresses of trusted proxies; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

/// An address, or a network in the form `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    first: IpAddr,
    /// The number of its leading bits that all addresses of the network share.
    prefix: u8,
}

impl TrustedProxies {
    /// These networks.
    pub const fn new(networks: Vec<Network>) -> Self {
        Self(networks)
    }

    /// The address of the client whose request came from this peer. The headers of a trusted proxy are believed. If
    /// they make no sense, or are those of another proxy, the peer's own address counts.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        if !is_forwarded(headers) {
            return peer.into();
        }
        let named = if self.has(peer) { self.named_client(headers) } else { None };
        ClientAddress::new(named.unwrap_or(peer)).by_proxy()
    }

    /// Whether this peer is a trusted proxy that says that its client came by TLS. Of several proxies in a row, the
    /// first entry counts: that of the proxy which the client reached. A client that invents this entry affects only
    /// its own cookies.
    pub fn tell_of_tls(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        let first = |name: &str| headers.get(name)?.to_str().ok()?.split(',').next();
        let is_https = |text: &str| text.trim().trim_matches('"').eq_ignore_ascii_case("https");
        let standard = || {
            let pairs = first(header::FORWARDED.as_str())?.split(';');
            let mut pairs = pairs.filter_map(|pair| pair.trim().split_once('='));
            let (_, scheme) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("proto"))?;
            Some(scheme)
        };
        self.has(peer) && first(X_FORWARDED_PROTO).or_else(standard).is_some_and(is_https)
    }

    /// Whether this is a trusted proxy.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.has(address))
    }

    /// The client that the headers name. A proxy that writes one header passes the other on as the client
    /// sent it, so if both are there and differ, neither is believed.
    fn named_client(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let named = headers
            .contains_key(X_FORWARDED_FOR)
            .then(|| self.nearest(headers, X_FORWARDED_FOR, hop));
        let forwarded = header::FORWARDED.as_str();
        let standard =
            headers.contains_key(forwarded).then(|| self.nearest(headers, forwarded, element));
        match (named, standard) {
            (Some(one), Some(other)) => one.filter(|_| one == other),
            (one, other) => one.or(other).flatten(),
        }
    }

    /// The nearest hop that is no trusted proxy; the farthest one if all are.
    fn nearest(
        &self,
        headers: &HeaderMap,
        name: &str,
        read: fn(&str) -> Option<IpAddr>,
    ) -> Option<IpAddr> {
        let mut farthest = None;
        let lines = headers.get_all(name).iter().rev();
        let hops = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
        for (number, hop) in hops.enumerate() {
            let address = read(hop.trim()).filter(|_| number < MOST_HOPS)?;
            if !self.has(address) {
                return Some(address);
            }
            farthest = Some(address);
        }
        farthest
    }
}

/// An address as proxies write it: bare, or with a port, which for IPv6 needs brackets.
fn hop(text: &str) -> Option<IpAddr> {
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let is_alone = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
            is_alone.then_some(address)?
        }
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => is_port(port).then_some(address)?,
            _ => text,
        },
    };
    address.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

/// The address in the `for` of one element of `Forwarded`.
fn element(text: &str) -> Option<IpAddr> {
    let mut pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.eq_ignore_ascii_case("for"))?;
    let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    hop(bare.unwrap_or(value))
}

impl Network {
    fn has(self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let beyond = 32 - u32::from(self.prefix);
                (u32::from(first) ^ u32::from(address)).checked_shr(beyond).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let beyond = 128 - u32::from(self.prefix);
                (u128::from(first) ^ u128::from(address)).checked_shr(beyond).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = if self.first.is_ipv4() { 32 } else { 128 };
        self.first.fmt(f)?;
        if self.prefix == longest { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is no address or network, such as 127.0.0.1 or 10.0.0.0/8");
        let (address, prefix) = match text.trim().split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text.trim(), None),
        };
        let first: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if first.is_ipv4() { 32 } else { 128 };
        let prefix =
            prefix.map_or(Ok(longest), |prefix| prefix.parse::<u8>().map_err(|_| wrong()))?;
        if prefix > longest {
            return Err(wrong());
        }
        Ok(Self { first, prefix })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn trusting(networks: &[&str]) -> TrustedProxies {
        TrustedProxies::new(networks.iter().map(|network| network.parse().unwrap()).collect())
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.append(name, value.parse().unwrap());
        }
        headers
    }

    fn client(proxies: &TrustedProxies, peer: &str, lines: &[(&str, &str)]) -> ClientAddress {
        proxies.client(peer.parse().unwrap(), &headers(lines))
    }

    fn proxied(ip: &str) -> ClientAddress {
        ClientAddress::new(ip.parse().unwrap()).by_proxy()
    }

    const HERE: &str = "127.0.0.1";

    #[test]
    fn headers_of_others_are_not_believed_and_set_them_apart() {
        let forged = [("x-forwarded-for", "203.0.113.7")];
        assert_eq!(client(&TrustedProxies::default(), HERE, &forged), proxied(HERE));
        assert_eq!(client(&trusting(&["10.0.0.0/8"]), HERE, &forged), proxied(HERE));
        let direct = ClientAddress::new(HERE.parse().unwrap());
        assert_eq!(client(&trusting(&[HERE]), HERE, &[]), direct);
        assert_eq!(client(&trusting(&[HERE]), HERE, &[("via", "1.1 a")]), proxied(HERE));
    }

    #[test]
    fn the_nearest_address_that_is_no_proxys_is_the_clients() {
        let proxies = trusting(&[HERE, "10.0.0.0/8"]);
        for (line, found) in [
            ("203.0.113.7", "203.0.113.7"),
            ("127.0.0.1, 203.0.113.7", "203.0.113.7"),
            ("198.51.100.1, 203.0.113.7,10.1.2.3", "203.0.113.7"),
            ("10.9.9.9, 10.1.2.3", "10.9.9.9"),
            ("junk, 203.0.113.7", "203.0.113.7"),
        ] {
            assert_eq!(
                client(&proxies, HERE, &[("x-forwarded-for", line)]),
                proxied(found),
                "{line}"
            );
        }
        let lines = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(client(&proxies, "::ffff:127.0.0.1", &lines), proxied("203.0.113.7"));
    }

    #[test]
    fn both_headers_are_read_in_all_their_forms() {
        let proxies = trusting(&[HERE]);
        let (v4, v6) = ("203.0.113.7", "2001:db8::7");
        for (name, value, found) in [
            ("x-forwarded-for", "203.0.113.7:4711", v4),
            ("x-forwarded-for", "2001:db8::7", v6),
            ("x-forwarded-for", "[2001:db8::7]", v6),
            ("x-forwarded-for", "[2001:db8::7]:4711", v6),
            ("x-forwarded-for", "::ffff:203.0.113.7", v4),
            ("forwarded", "for=203.0.113.7", v4),
            ("forwarded", "proto=https;For=\"203.0.113.7:80\";by=_a", v4),
            ("forwarded", "for=192.0.2.1, for=\"[2001:db8::7]:4711\"", v6),
            ("forwarded", "for=\"open, for=203.0.113.7", v4),
        ] {
            assert_eq!(client(&proxies, HERE, &[(name, value)]), proxied(found), "{value}");
        }
    }

    #[test]
    fn what_makes_no_sense_counts_for_the_proxy() {
        let proxies = trusting(&[HERE]);
        let many = "127.0.0.1,".repeat(MOST_HOPS) + "127.0.0.1";
        for (name, value) in [
            ("x-forwarded-for", ""),
            ("x-forwarded-for", "unknown"),
            ("x-forwarded-for", "203.0.113.7, "),
            ("x-forwarded-for", "203.0.113.7:99999"),
            ("x-forwarded-for", "[2001:db8::7"),
            ("x-forwarded-for", "[2001:db8::7]4711"),
            ("x-forwarded-for", &many),
            ("forwarded", "for=_hidden"),
            ("forwarded", "proto=https"),
            ("forwarded", "for=203.0.113.7, by=10.0.0.1"),
            ("x-real-ip", "203.0.113.7"),
        ] {
            assert_eq!(client(&proxies, HERE, &[(name, value)]), proxied(HERE), "{value}");
        }
        let bytes = http::HeaderValue::from_bytes(b"203.0.113.7\xff").unwrap();
        let headers = [(HeaderName::from_static("x-forwarded-for"), bytes)].into_iter().collect();
        assert_eq!(proxies.client(HERE.parse().unwrap(), &headers), proxied(HERE));
    }

    #[test]
    fn two_headers_must_name_the_same_client() {
        let proxies = trusting(&[HERE]);
        let both = |other| [("x-forwarded-for", "203.0.113.7"), ("forwarded", other)];
        assert_eq!(client(&proxies, HERE, &both("for=203.0.113.7")), proxied("203.0.113.7"));
        assert_eq!(client(&proxies, HERE, &both("for=198.51.100.1")), proxied(HERE));
        assert_eq!(client(&proxies, HERE, &both("nonsense")), proxied(HERE));
    }

    #[test]
    fn a_trusted_proxy_says_whether_its_client_came_by_tls() {
        let proxies = trusting(&["10.0.0.1"]);
        let named = |peer: &str, name, value| {
            proxies.tell_of_tls(peer.parse().unwrap(), &headers(&[(name, value)]))
        };
        for (name, value, is_tls) in [
            ("x-forwarded-proto", "https", true),
            ("x-forwarded-proto", "HTTPS, http", true),
            ("x-forwarded-proto", "http", false),
            ("forwarded", "for=10.0.0.7; proto=https", true),
            ("forwarded", "for=10.0.0.7;proto=\"https\", for=10.0.0.8;proto=http", true),
            ("forwarded", "For=10.0.0.7;Proto=https", true),
            ("forwarded", "for=10.0.0.7", false),
            ("x-forwarded-for", "https", false),
        ] {
            assert_eq!(named("10.0.0.1", name, value), is_tls, "{name}: {value}");
            assert!(!named("10.0.0.2", name, value), "another proxy is not believed");
        }
    }

    #[test]
    fn networks_have_the_addresses_that_share_their_prefix() {
        for (network, inside, outside) in [
            ("10.1.0.0/16", "10.1.255.255", "10.2.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("0.0.0.0/0", "203.0.113.7", "::1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let proxies = trusting(&[network]);
            assert!(proxies.has(inside.parse().unwrap()), "{network}");
            assert!(!proxies.has(outside.parse().unwrap()), "{network}");
        }
        for wrong in ["", "localhost", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "10.0.0.0/8/8", "/8"]
        {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }
}
