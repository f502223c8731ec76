//! Where a client is, for everything that is counted by address.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A client's address, and how its requests come.
///
/// Attempts and connections are counted for this, and not for the IP address alone. So neither the clients
/// of a proxy nor web pages use up what programs at the same address have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientAddress {
    ip: IpAddr,
    by_proxy: bool,
    foreign_page: bool,
}

impl ClientAddress {
    /// A program that connects itself, from this address.
    pub const fn new(ip: IpAddr) -> Self {
        Self { ip: ip.to_canonical(), by_proxy: false, foreign_page: false }
    }

    /// The same address, for requests that a proxy passed on.
    #[must_use]
    pub const fn by_proxy(self) -> Self {
        Self { by_proxy: true, ..self }
    }

    /// The same address, for requests that a web page of another origin makes a browser send.
    #[must_use]
    pub const fn of_foreign_page(self) -> Self {
        Self { foreign_page: true, ..self }
    }

    /// The IP address: the client's own, or the proxy's if the client's is not known.
    pub const fn ip(self) -> IpAddr {
        self.ip
    }

    /// Whether a proxy passed the request on.
    pub const fn is_by_proxy(self) -> bool {
        self.by_proxy
    }

    /// Whether a web page of another origin makes a browser send the requests.
    pub const fn is_of_foreign_page(self) -> bool {
        self.foreign_page
    }

    /// Whether it is a program of this machine that connects itself.
    pub const fn is_this_machine(self) -> bool {
        self.ip.is_loopback() && !self.by_proxy
    }

    /// The addresses that one owner has: an IPv4 address, a whole /64 of IPv6, or all loopback addresses.
    #[must_use]
    pub const fn party(self) -> Self {
        let ip = match self.ip {
            ip if ip.is_loopback() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V4(ip) => IpAddr::V4(ip),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        };
        Self { ip, ..self }
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(ip: IpAddr) -> Self {
        Self::new(ip)
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip.fmt(f)?;
        match self.by_proxy {
            true => f.write_str(" (by proxy)"),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> ClientAddress {
        ClientAddress::new(text.parse().unwrap())
    }

    #[test]
    fn a_party_is_an_address_a_network_of_ipv6_or_this_machine() {
        assert_eq!(at("2001:db8::1").party(), at("2001:db8::ffff:2").party());
        assert_ne!(at("2001:db8::1").party(), at("2001:db8:0:1::1").party());
        assert_eq!(at("::1").party(), at("::ffff:127.0.0.2").party());
        assert_eq!(at("::ffff:10.0.0.1"), at("10.0.0.1"));
        assert_ne!(at("10.0.0.1").party(), at("10.0.0.2").party());
    }

    #[test]
    fn clients_of_a_proxy_and_pages_are_apart_from_programs_at_the_same_address() {
        let here = at("127.0.0.1");
        let all =
            [here, here.by_proxy(), here.of_foreign_page(), here.by_proxy().of_foreign_page()];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| one.party() != other.party()));
        }
        assert!(here.is_this_machine() && !here.by_proxy().is_this_machine());
        assert_eq!(here.by_proxy().to_string(), "127.0.0.1 (by proxy)");
    }
}
