//! The addresses at which others could reach this machine, and its name.

use std::{
    collections::HashSet,
    net::{IpAddr, UdpSocket},
};

use base::interface::is_virtual;
pub use base::system::host_name;
use if_addrs::{IfOperStatus, Interface, get_if_addrs};

const MAX_ADDRESSES: usize = 16;

/// The addresses of this machine that others could reach it by: IPv4 first, at most 16, each once.
/// Not those of the machine itself, those that mean nothing beyond their own wire (link-local), nor
/// those of the networks of containers and tunnels. Empty if the system does not tell.
#[must_use]
pub fn addresses() -> Vec<IpAddr> {
    reachable(get_if_addrs().unwrap_or_default())
}

/// The same, but first those of this machine's way to everywhere, if it has one.
#[must_use]
pub fn preferred_addresses() -> Vec<IpAddr> {
    let mut all: Vec<IpAddr> = outward().into_iter().flatten().collect();
    all.extend(addresses());
    let mut seen = HashSet::new();
    all.retain(|address| seen.insert(*address));
    all
}

/// The source addresses that the kernel would choose. Nothing is sent.
fn outward() -> [Option<IpAddr>; 2] {
    // Addresses for documentation (RFC 5737, RFC 3849) follow the default route, and nobody has them.
    let routes = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let from = |(own, other): (&str, &str)| {
        let socket = UdpSocket::bind(own).ok()?;
        socket.connect(other).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    let leads_out = |address: &IpAddr| !address.is_loopback() && !address.is_unspecified();
    routes.map(|route| from(route).filter(leads_out))
}

fn reachable(interfaces: Vec<Interface>) -> Vec<IpAddr> {
    let usable = interfaces.into_iter().filter(is_usable);
    let mut addresses: Vec<IpAddr> = usable.map(|interface| interface.ip()).collect();
    addresses.sort_by_key(|address| (address.is_ipv6(), *address));
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    addresses
}

fn is_usable(interface: &Interface) -> bool {
    let address = interface.ip();
    let leads_out = !interface.is_loopback() && !interface.is_link_local();
    let is_up = matches!(interface.oper_status, IfOperStatus::Up | IfOperStatus::Unknown);
    let is_one = !address.is_unspecified() && !address.is_multicast();
    leads_out && is_up && is_one && !is_virtual(&interface.name)
}

#[cfg(test)]
mod tests {
    use if_addrs::{IfAddr, Ifv4Addr, Ifv6Addr};

    use super::*;

    fn interface(name: &str, address: &str) -> Interface {
        let addr = match address.parse().unwrap() {
            IpAddr::V4(ip) => IfAddr::V4(Ifv4Addr {
                ip,
                netmask: [255, 255, 255, 0].into(),
                prefixlen: 24,
                broadcast: None,
            }),
            IpAddr::V6(ip) => {
                IfAddr::V6(Ifv6Addr { ip, netmask: ip, prefixlen: 64, broadcast: None })
            }
        };
        let (name, oper_status) = (name.to_owned(), IfOperStatus::Up);
        Interface { name, addr, index: None, oper_status, is_p2p: false }
    }

    fn advertised(interfaces: &[(&str, &str)]) -> Vec<String> {
        let interfaces = interfaces.iter().map(|(name, address)| interface(name, address));
        reachable(interfaces.collect()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_what_others_could_reach_is_told_ipv4_first() {
        let all = [
            ("eth0", "fd00::2"),
            ("lo", "127.0.0.1"),
            ("lo", "::1"),
            ("eth0", "fe80::1"),
            ("eth0", "192.0.2.7"),
            ("wlan0", "169.254.3.4"),
            ("docker0", "172.17.0.1"),
            ("wg0", "10.8.0.2"),
            ("wlan0", "192.0.2.7"),
        ];
        assert_eq!(advertised(&all), ["192.0.2.7", "fd00::2"]);
    }

    #[test]
    fn an_interface_that_is_down_has_no_address() {
        let mut down = interface("eth0", "192.0.2.7");
        down.oper_status = IfOperStatus::Down;
        assert!(reachable(vec![down]).is_empty());
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let many: Vec<String> = (1..=200).map(|last| format!("192.0.2.{last}")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|one| ("eth0", one.as_str())).collect();
        assert_eq!(advertised(&many).len(), MAX_ADDRESSES);
    }

    #[test]
    fn this_machine_is_asked() {
        assert!(addresses().iter().all(|address| !address.is_loopback()));
    }
}
