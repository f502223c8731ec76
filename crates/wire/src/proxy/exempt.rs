//! Hosts that are reached without a proxy.

use std::net::{IpAddr, Ipv6Addr};

use super::bare;

/// The most entries of a list that are kept.
const MAX_ENTRIES: usize = 4096;

/// The hosts that are reached directly: this machine, its own link, and the entries of `NO_PROXY`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Exempt(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    /// Only this port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    All,
    /// A domain, and all names below it.
    Domain(String),
    /// The addresses whose first bits are those of this address; the second field is the number of bits.
    Network(IpAddr, u8),
}

impl Exempt {
    /// Reads a list: names, suffixes with or without a dot or `*.` before them, addresses, networks
    /// (`10.0.0.0/8`) and `*`, each with `:PORT` or without. An entry of any other form exempts
    /// nothing.
    pub(super) fn parse(list: &str) -> Self {
        let entries = list.split([',', ' ', '\t', ';']).map(str::trim);
        Self(entries.filter_map(Entry::parse).take(MAX_ENTRIES).collect())
    }

    pub(super) fn has(&self, host: &str, port: u16) -> bool {
        let name = bare(host).trim_end_matches('.').to_ascii_lowercase();
        let address = name.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        address.map_or_else(|| is_localhost(&name), is_near)
            || self.0.iter().any(|entry| entry.has(&name, address, port))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if let Some(hosts) = Hosts::parse(text) {
            return Some(Self { hosts, port: None });
        }
        let (hosts, port) = text.rsplit_once(':')?;
        Some(Self { hosts: Hosts::parse(hosts)?, port: Some(port.parse().ok()?) })
    }

    fn has(&self, name: &str, address: Option<IpAddr>, port: u16) -> bool {
        self.port.is_none_or(|only| only == port) && self.hosts.has(name, address)
    }
}

impl Hosts {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::All);
        }
        if let Ok(address) = bare(text).parse::<IpAddr>() {
            return Some(Self::Network(address.to_canonical(), 128));
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address = bare(address).parse::<IpAddr>().ok()?;
            return Some(network(address, bits.parse().ok()?));
        }
        let domain = text.trim_start_matches('*').trim_matches('.').to_ascii_lowercase();
        let is_name = !domain.is_empty() && !domain.contains([':', '*', '/', '[', ']']);
        is_name.then_some(Self::Domain(domain))
    }

    fn has(&self, name: &str, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::All, _) => true,
            (Self::Network(network, bits), Some(address)) => is_within(*network, *bits, address),
            (Self::Domain(domain), None) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('.')),
            _ => false,
        }
    }
}

/// A network in the form in which addresses are compared: one of IPv4 addresses that are written as IPv6 addresses
/// (`::ffff:10.0.0.0/104`) is one of IPv4.
fn network(address: IpAddr, bits: u8) -> Hosts {
    match (address.to_canonical(), bits.checked_sub(96)) {
        (v4 @ IpAddr::V4(_), Some(bits)) if address.is_ipv6() => Hosts::Network(v4, bits),
        _ => Hosts::Network(address, bits),
    }
}

fn is_within(network: IpAddr, bits: u8, address: IpAddr) -> bool {
    let differing = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (network.to_bits() ^ address.to_bits()).leading_zeros()
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits() ^ address.to_bits()).leading_zeros()
        }
        _ => return false,
    };
    let whole = if network.is_ipv4() { 32 } else { 128 };
    differing >= u32::from(bits).min(whole)
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether an address is a loopback, unspecified or link-local one: routers pass none of them on.
fn is_near(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => Ipv6Addr::is_unicast_link_local(&address),
    };
    address.is_loopback() || address.is_unspecified() || is_link_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_its_own_link_need_no_entry() {
        let near = [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "0.0.0.0",
            "::",
            "169.254.1.1",
            "[fe80::1]",
            "::ffff:127.0.0.1",
        ];
        for host in near {
            assert!(Exempt::default().has(host, 80), "{host}");
        }
        for host in ["example.com", "10.0.0.1", "localhost.example", "[fd00::1]"] {
            assert!(!Exempt::default().has(host, 80), "{host}");
        }
    }

    #[test]
    fn every_form_of_an_entry_is_read() {
        let cases: [(&str, &[&str], &[&str]); 10] = [
            ("example.com", &["example.com", "EXAMPLE.COM.", "a.example.com"], &["badexample.com"]),
            (".example.com", &["a.example.com", "example.com"], &["example.com.evil"]),
            ("*.example.com", &["a.b.example.com"], &["example.org"]),
            ("*", &["anything", "10.0.0.1"], &[]),
            ("10.0.0.0/8", &["10.255.0.1", "::ffff:10.1.1.1"], &["11.0.0.1", "ten.example"]),
            ("fd00::/8", &["[fdab::1]"], &["[fe00::1]", "10.0.0.1"]),
            ("::ffff:10.0.0.0/104", &["10.1.1.1", "[::ffff:10.2.2.2]"], &["11.0.0.1"]),
            ("192.168.1.7", &["192.168.1.7"], &["192.168.1.8"]),
            ("10.0.0.0/0", &["1.2.3.4"], &["[::2]"]),
            ("[2001:db8::1]", &["[2001:db8::1]"], &["[2001:db8::2]"]),
        ];
        for (list, exempt, other) in cases {
            let entries = Exempt::parse(list);
            exempt.iter().for_each(|host| assert!(entries.has(host, 443), "{list}: {host}"));
            other.iter().for_each(|host| assert!(!entries.has(host, 443), "{list}: {host}"));
        }
    }

    #[test]
    fn an_entry_may_be_for_one_port() {
        let entries = Exempt::parse("a.example:8443, [2001:db8::1]:80 ,10.0.0.0/8:9178;b.example");
        for (host, port, exempt) in [
            ("a.example", 8443, true),
            ("a.example", 443, false),
            ("[2001:db8::1]", 80, true),
            ("[2001:db8::1]", 81, false),
            ("10.2.3.4", 9178, true),
            ("10.2.3.4", 443, false),
            ("b.example", 1, true),
        ] {
            assert_eq!(entries.has(host, port), exempt, "{host}:{port}");
        }
    }

    #[test]
    fn what_is_no_entry_exempts_nothing_and_a_list_is_bounded() {
        assert_eq!(Exempt::parse(",, a:b:c, 10.0.0.0/x, *.*, http://a"), Exempt::default());
        let long = vec!["a.example"; MAX_ENTRIES + 1].join(",");
        assert_eq!(Exempt::parse(&long).0.len(), MAX_ENTRIES);
    }
}
