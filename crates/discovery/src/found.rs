//! Found services, cleaned: all their fields come from strangers.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv6Addr},
};

use base::plain::stripped;
use mdns_sd::{ResolvedService, ScopedIp, TxtProperty};

use crate::{Service, advertisement::SERVER_ID, interfaces::is_loopback};

/// Services that are remembered of one browsing; those found later are left out.
pub const MAX_FOUND: usize = 256;

/// Addresses that are remembered of one service.
const MAX_ADDRESSES: usize = 16;

/// Properties that are remembered of one service; each is at most 255 bytes by its format.
const MAX_PROPERTIES: usize = 32;

/// A service that somebody on the network says is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    /// Its kind, as it announces it.
    pub service: Service,
    /// Its name among services of its type.
    pub instance: String,
    /// The host that it says it is on, such as `box.local`.
    pub host: String,
    /// Where it says it can be reached: IPv4 first, at most 16. An address of the machine itself
    /// is believed only to the machine itself.
    pub addresses: Vec<IpAddr>,
    /// The TCP port.
    pub port: u16,
    /// Its properties, at most 32 pairs; a key without a value has an empty one.
    pub properties: Vec<(String, String)>,
}

impl Discovered {
    /// The value of a property; keys are compared without regard to case (RFC 6763 section 6.4).
    #[must_use]
    pub fn property(&self, key: &str) -> Option<&str> {
        let mut pairs = self.properties.iter();
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value.as_str())
    }

    /// Whether it is no server but where peers of the mesh connect to.
    #[must_use]
    pub fn is_mesh(&self) -> bool {
        self.service == Service::Teale
            || self.property("kind").is_some_and(|kind| kind.eq_ignore_ascii_case("mesh"))
    }

    /// The id that the server says it has. Anybody can say it.
    #[must_use]
    pub fn server_id(&self) -> Option<&str> {
        self.property(SERVER_ID).filter(|_| self.service == Service::Warren)
    }

    /// The URLs that it may be reached by, without a slash at the end: IPv4 first. Addresses that
    /// say nothing without the name of an interface are left out.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        let is_tls =
            self.property("protocol").is_some_and(|said| said.eq_ignore_ascii_case("https"));
        let scheme = if is_tls { "https" } else { "http" };
        let usable = self.addresses.iter().filter(|address| !is_link_local(address));
        usable
            .map(|address| match address {
                IpAddr::V4(v4) => format!("{scheme}://{v4}:{}", self.port),
                IpAddr::V6(v6) => format!("{scheme}://[{v6}]:{}", self.port),
            })
            .collect()
    }

    /// `None` when it says nothing of use.
    pub(crate) fn new(service: Service, said: &ResolvedService) -> Option<Self> {
        let addresses = addresses(said);
        let instance = instance(service, said.get_fullname())?;
        let useful = said.get_port() != 0 && !addresses.is_empty();
        useful.then(|| Self {
            service,
            instance,
            host: stripped(said.get_hostname().trim_end_matches('.')),
            addresses,
            port: said.get_port(),
            properties: said.get_properties().iter().take(MAX_PROPERTIES).map(pair).collect(),
        })
    }
}

/// The first part of a full name `INSTANCE.SERVICE`, cleaned.
pub(crate) fn instance(service: Service, full: &str) -> Option<String> {
    let end = full.len().checked_sub(service.name().len() + 1)?;
    let (instance, rest) = (full.get(..end)?, full.get(end + 1..)?);
    rest.eq_ignore_ascii_case(service.name()).then(|| stripped(instance))
}

fn pair(property: &TxtProperty) -> (String, String) {
    let value = property.val().map(String::from_utf8_lossy).unwrap_or_default();
    (stripped(property.key()), stripped(&value))
}

fn addresses(said: &ResolvedService) -> Vec<IpAddr> {
    let believed = said.get_addresses().iter().filter(|address| is_believed(address));
    let mut addresses: Vec<IpAddr> = believed.map(ScopedIp::to_ip_addr).collect();
    // IPv4 comes before IPv6.
    addresses.sort_unstable();
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    addresses
}

/// A stranger on the network must not send us to this machine's own services.
fn is_believed(address: &ScopedIp) -> bool {
    let ip = address.to_ip_addr().to_canonical();
    let told_here = match address {
        ScopedIp::V4(v4) => v4.interface_ids().iter().any(|heard| is_loopback(&heard.name)),
        ScopedIp::V6(v6) => is_loopback(&v6.scope_id().name),
        _ => false,
    };
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    let names_a_host = !(ip.is_unspecified() || ip.is_multicast() || is_broadcast);
    names_a_host && (!ip.is_loopback() || told_here)
}

fn is_link_local(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if Ipv6Addr::is_unicast_link_local(v6))
}

/// The found services so far, by service and name.
#[derive(Debug, Default)]
pub(crate) struct Findings(BTreeMap<(Service, String), Discovered>);

impl Findings {
    /// Adds one, or replaces what was known of it.
    pub(crate) fn add(&mut self, found: Discovered) {
        let key = (found.service, found.instance.to_lowercase());
        if self.0.len() < MAX_FOUND || self.0.contains_key(&key) {
            self.0.insert(key, found);
        }
    }

    pub(crate) fn remove(&mut self, service: Service, instance: &str) {
        self.0.remove(&(service, instance.to_lowercase()));
    }

    /// All, in the order of `services` and by name. What is announced more than once, at the same
    /// host and port, is listed once, as the first of `services` that it is.
    pub(crate) fn list(mut self, services: &[Service]) -> Vec<Discovered> {
        let mut listed = Vec::new();
        let mut places = BTreeSet::new();
        for service in services {
            let of_service = self.0.extract_if(.., |(of, _), _| of == service);
            let found = of_service.map(|(_, found)| found);
            listed.extend(found.filter(|one| places.insert((one.host.to_lowercase(), one.port))));
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use mdns_sd::{InterfaceId, ScopedIpV4, ServiceInfo};

    use super::*;

    fn server(service: Service, instance: &str, host: &str, port: u16) -> Discovered {
        let addresses = vec!["192.0.2.7".parse().unwrap()];
        let (instance, host) = (instance.to_owned(), host.to_owned());
        Discovered { service, instance, host, addresses, port, properties: Vec::new() }
    }

    fn at(addresses: &[&str], protocol: &str) -> Discovered {
        let addresses = addresses.iter().map(|text| text.parse().unwrap()).collect();
        let properties = vec![("Protocol".to_owned(), protocol.to_owned())];
        Discovered { addresses, properties, ..server(Service::Warren, "a", "h", 80) }
    }

    #[test]
    fn urls_say_the_protocol_and_leave_out_what_needs_an_interface() {
        let addresses = ["192.0.2.7", "2001:db8::7", "fe80::1"];
        let plain = ["http://192.0.2.7:80", "http://[2001:db8::7]:80"];
        assert_eq!(at(&addresses, "http").urls(), plain);
        assert_eq!(at(&addresses, "gopher").urls(), plain);
        assert_eq!(at(&["192.0.2.7"], "HTTPS").urls(), ["https://192.0.2.7:80"]);
        assert!(at(&["fe80::1"], "http").urls().is_empty());
    }

    #[test]
    fn where_peers_of_the_mesh_connect_to_is_told_from_servers() {
        let mut found = server(Service::Warren, "a", "h", 80);
        assert!(!found.is_mesh());
        found.properties.push(("Kind".to_owned(), "mesh".to_owned()));
        assert!(found.is_mesh());
        assert!(server(Service::Teale, "a", "h", 80).is_mesh());
    }

    #[test]
    fn a_name_is_what_stands_before_its_service() {
        let of = |full| instance(Service::Warren, full);
        assert_eq!(of("a.b._warren._tcp.local."), Some("a.b".to_owned()));
        assert_eq!(of("a._WARREN._tcp.Local."), Some("a".to_owned()));
        for other in ["a._gambi._tcp.local.", "_warren._tcp.local.", "", "é"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn only_this_machine_is_believed_about_its_own_addresses() {
        let heard_on = |interface: &str, address: &str| {
            let interface = InterfaceId { name: interface.to_owned(), index: 1 };
            is_believed(&ScopedIp::V4(ScopedIpV4::new(address.parse().unwrap(), interface)))
        };
        assert!(heard_on("lo", "127.0.0.1"));
        assert!(heard_on("eth0", "192.0.2.7"));
        for address in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "224.0.0.251", "255.255.255.255"] {
            assert!(!heard_on("eth0", address), "{address}");
        }
        for address in ["::1", "::ffff:127.0.0.1", "::", "ff02::fb"] {
            let address: IpAddr = address.parse().unwrap();
            assert!(!is_believed(&address.into()), "{address}");
        }
    }

    #[test]
    fn useless_announcements_are_left_out() {
        let said = |address: &str, port| {
            let name = Service::Warren.name();
            let info = ServiceInfo::new(name, "a\nb", "h.local.", address, port, &[("k", "v")][..]);
            Discovered::new(Service::Warren, &info.unwrap().as_resolved_service())
        };
        let sound = said("192.0.2.7,192.0.2.6", 80).unwrap();
        assert_eq!((sound.instance.as_str(), sound.host.as_str()), ("ab", "h.local"));
        assert_eq!(sound.urls(), ["http://192.0.2.6:80", "http://192.0.2.7:80"]);
        assert_eq!((sound.property("K"), sound.property("other")), (Some("v"), None));
        assert_eq!((said("192.0.2.7", 0), said("", 80), said("127.0.0.1", 80)), (None, None, None));
        let many: Vec<_> = (0..99).map(|number| format!("192.0.2.{number}")).collect();
        assert_eq!(said(&many.join(","), 80).unwrap().addresses.len(), MAX_ADDRESSES);
    }

    #[test]
    fn text_of_strangers_cannot_move_a_terminals_cursor() {
        let full = format!("a\u{1b}[2Jb\r\nc\u{202e}d\u{200b}\u{9b}ö.{}", Service::Warren.name());
        assert_eq!(instance(Service::Warren, &full).as_deref(), Some("a[2Jbcdö"));
    }

    #[test]
    fn a_service_announced_twice_is_listed_once() {
        let mut findings = Findings::default();
        findings.add(server(Service::Gambi, "gambi-hub-1", "h.local", 1));
        findings.add(server(Service::Warren, "warren-1-h", "H.local", 1));
        findings.add(server(Service::Warren, "Warren-1-H", "h.local", 1));
        findings.add(server(Service::Gambi, "stock", "h.local", 2));
        let listed = findings.list(&[Service::Warren, Service::Gambi]);
        let names: Vec<_> = listed.iter().map(|found| found.instance.as_str()).collect();
        assert_eq!(names, ["Warren-1-H", "stock"]);
    }

    #[test]
    fn a_service_that_is_gone_is_not_listed() {
        let mut findings = Findings::default();
        findings.add(server(Service::Warren, "One", "h", 1));
        findings.add(server(Service::Warren, "two", "h", 2));
        findings.remove(Service::Warren, "one");
        findings.remove(Service::Gambi, "two");
        let listed = findings.list(&[Service::Warren]);
        assert_eq!(listed, [server(Service::Warren, "two", "h", 2)]);
    }

    #[test]
    fn only_so_many_are_remembered_and_those_stay_up_to_date() {
        let mut findings = Findings::default();
        for number in 0..=MAX_FOUND {
            findings.add(server(Service::Warren, &format!("{number:04}"), &number.to_string(), 1));
        }
        findings.add(server(Service::Warren, "0000", "0", 7));
        let listed = findings.list(&[Service::Warren]);
        assert_eq!((listed.len(), listed[0].port), (MAX_FOUND, 7));
    }
}
