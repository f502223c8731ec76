//! One announcement, as data.

use std::net::IpAddr;

use mdns_sd::ServiceInfo;

use crate::{DiscoveryError, Service, interfaces};

/// The longest label of DNS, in bytes (RFC 1035 section 2.3.4).
const LABEL: usize = 63;

/// The longest host name that goes into the names of ours, in bytes: two labels' worth of other
/// text must find room beside it.
const HOST: usize = 40;

/// The property with a server's id.
pub(crate) const SERVER_ID: &str = "id";

/// One service of this machine that others may find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advertisement {
    /// Its kind.
    pub service: Service,
    /// The TCP port that it listens on.
    pub port: u16,
    /// Its name among services of its type, 1 to 63 bytes. If another has it already, mDNS gives
    /// it a number.
    pub instance: String,
    /// Its properties: keys in ASCII without `=`, each pair at most 254 bytes.
    pub properties: Vec<(String, String)>,
    /// Where it can be reached. An unspecified address stands for all of its family; none at all
    /// for every address of this machine's local networks, as they come and go.
    pub addresses: Vec<IpAddr>,
}

/// The services that a server with rooms announces: one for stock clients, if they can reach it, and
/// one for ours. `version` is this program's; `listen` is the address that the server is bound to.
///
/// Stock clients speak plain HTTP only, so a server with TLS is not announced to them. `id` is the server's: by it
/// machines that joined it find it again.
#[must_use]
pub fn rooms(port: u16, version: &str, listen: IpAddr, tls: bool, id: &str) -> Vec<Advertisement> {
    let mut all = rooms_on(&this_host(), port, version, listen, tls);
    let own = all.iter_mut().filter(|one| one.service == Service::Warren);
    own.for_each(|one| one.properties.push((SERVER_ID.to_owned(), id.to_owned())));
    all
}

fn rooms_on(host: &str, port: u16, version: &str, listen: IpAddr, tls: bool) -> Vec<Advertisement> {
    let addresses = reachable_at(listen);
    let announce = |service, instance, version: &str, protocol: &str| Advertisement {
        service,
        port,
        instance,
        properties: vec![
            ("version".to_owned(), version.to_owned()),
            ("protocol".to_owned(), protocol.to_owned()),
        ],
        addresses: addresses.clone(),
    };
    let stock = || announce(Service::Gambi, format!("gambi-hub-{port}"), "1.0", "http");
    let protocol = if tls { "https" } else { "http" };
    let own = announce(Service::Warren, format!("warren-{port}-{host}"), version, protocol);
    let stock = (!tls).then(stock);
    stock.into_iter().chain([own]).collect()
}

/// The [`Advertisement::addresses`] of a server that is bound to `listen`.
#[must_use]
pub fn reachable_at(listen: IpAddr) -> Vec<IpAddr> {
    match listen {
        // Such a socket takes IPv4, too.
        IpAddr::V6(v6) if v6.is_unspecified() => Vec::new(),
        _ => vec![listen],
    }
}

impl Advertisement {
    pub(crate) fn info(&self) -> Result<ServiceInfo, DiscoveryError> {
        let instance = &self.instance;
        let fits = (1..=LABEL).contains(&instance.len());
        if !fits || instance.chars().any(char::is_control) {
            return Err(DiscoveryError::Instance { instance: instance.clone() });
        }
        let info = ServiceInfo::new(
            self.service.name(),
            instance,
            &host_name(&this_host(), self.port),
            self.fixed_addresses(),
            self.port,
            &self.properties[..],
        );
        let mut info = info.map_err(|error| DiscoveryError::Refused {
            instance: instance.clone(),
            reason: error.to_string(),
        })?;
        info.set_interfaces(interfaces::of_addresses(&self.addresses));
        Ok(if self.is_loopback() { info } else { info.enable_addr_auto() })
    }

    /// Those of the machine itself are announced as they are: 127.0.0.2 is no address of an
    /// interface. Others are, and are announced for as long as an interface has them.
    fn fixed_addresses(&self) -> &[IpAddr] {
        if self.is_loopback() { &self.addresses } else { &[] }
    }

    fn is_loopback(&self) -> bool {
        !self.addresses.is_empty() && self.addresses.iter().all(IpAddr::is_loopback)
    }
}

/// The host that announced services are on. It is not the machine's own name, which is for others
/// to announce: a server that has only some of the machine's addresses, and that goes when the
/// machine stays, would hide the rest of them from other programs.
fn host_name(host: &str, port: u16) -> String {
    format!("warren-{port}-{host}.local.")
}

/// This machine's name as a part of names of DNS.
fn this_host() -> String {
    host_label(&base::system::host_name())
}

/// The first label of a host name, with nothing but letters, digits and hyphens in it.
fn host_label(name: &str) -> String {
    let first = name.split('.').next().unwrap_or_default();
    let plain = first.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let label: String = plain.take(HOST).collect();
    match label.trim_matches('-') {
        "" => "host".to_owned(),
        label => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    const LISTEN: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

    fn property<'a>(advertisement: &'a Advertisement, key: &str) -> &'a str {
        let mut pairs = advertisement.properties.iter();
        pairs.find(|(name, _)| name == key).map_or("", |(_, value)| value)
    }

    #[test]
    fn a_server_is_announced_to_stock_clients_and_to_ours() {
        let [stock, own] = &rooms_on("vm", 9178, "0.1.0", LISTEN, false)[..] else {
            panic!("two are announced");
        };
        assert_eq!((stock.service, stock.instance.as_str()), (Service::Gambi, "gambi-hub-9178"));
        assert_eq!((property(stock, "version"), property(stock, "protocol")), ("1.0", "http"));
        assert_eq!((own.service, own.instance.as_str()), (Service::Warren, "warren-9178-vm"));
        assert_eq!((property(own, "version"), property(own, "protocol")), ("0.1.0", "http"));
        assert_eq!((stock.port, own.port), (9178, 9178));
    }

    #[test]
    fn a_server_tells_its_id_to_ours() {
        let all: Vec<_> = rooms(1, "", LISTEN, false, "07ab");
        let ids: Vec<_> = all.iter().map(|one| property(one, SERVER_ID)).collect();
        assert_eq!(ids, ["", "07ab"]);
    }

    #[test]
    fn a_server_with_tls_is_not_announced_to_stock_clients() {
        let [own] = &rooms_on("vm", 1, "0.1.0", LISTEN, true)[..] else {
            panic!("one is announced");
        };
        assert_eq!((own.service, property(own, "protocol")), (Service::Warren, "https"));
    }

    #[test]
    fn a_server_on_one_address_announces_that_one_and_on_all_those_that_it_takes() {
        let addresses = |listen| rooms_on("vm", 1, "", listen, true).remove(0).addresses;
        assert_eq!(addresses(LISTEN), [LISTEN]);
        let any4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        assert_eq!(addresses(any4), [any4], "IPv4 only");
        assert!(addresses(Ipv6Addr::UNSPECIFIED.into()).is_empty(), "both families");
    }

    #[test]
    fn names_are_made_of_the_machines_and_fit_into_a_label() {
        assert_eq!(host_label("box.example.org"), "box");
        assert_eq!(host_label("Anna's Mac"), "Anna-s-Mac");
        assert_eq!((host_label(""), host_label("…")), ("host".to_owned(), "host".to_owned()));
        let longest = rooms_on(&host_label(&"x".repeat(99)), u16::MAX, "", LISTEN, false);
        assert!(longest.iter().all(|advertisement| advertisement.instance.len() <= LABEL));
        assert_eq!(host_name("vm", 80), "warren-80-vm.local.");
    }

    #[test]
    fn names_and_properties_that_dns_cannot_carry_are_refused() {
        let sound = rooms_on("vm", 1, "0.1.0", LISTEN, true).remove(0);
        assert!(sound.info().is_ok());
        for bad in [String::new(), "x".repeat(64), "a\nb".to_owned()] {
            let bad = Advertisement { instance: bad, ..sound.clone() };
            assert!(matches!(bad.info(), Err(DiscoveryError::Instance { .. })), "{bad:?}");
        }
        let long = vec![("key".to_owned(), "x".repeat(255))];
        let long = Advertisement { properties: long, ..sound };
        assert!(matches!(long.info(), Err(DiscoveryError::Refused { .. })));
    }

    #[test]
    fn only_addresses_of_the_machine_itself_are_announced_without_an_interface_that_has_them() {
        let of = |listen: &str| {
            let one = rooms_on("vm", 1, "", listen.parse().unwrap(), true).remove(0);
            let info = one.info().unwrap();
            (info.is_addr_auto(), info.get_addresses().len())
        };
        assert_eq!(of("127.0.0.2"), (false, 1));
        assert_eq!(of("192.0.2.7"), (true, 0));
        assert_eq!(of("0.0.0.0"), (true, 0));
        assert_eq!(of("::"), (true, 0));
    }
}
