//! Which of a machine's interfaces take part.
//!
//! The networks of containers and of tunnels do not: nobody else is there, their addresses are of
//! no use elsewhere, and the daemon of mDNS loses its way among the many there may be.

use std::net::IpAddr;

use base::interface::is_virtual;
use mdns_sd::{IfKind, IfPredicate};

/// How far browsing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reach {
    /// The local networks of this machine, and the machine itself.
    #[default]
    Network,
    /// The machine itself alone: nothing leaves it but what the kernel tells its switch of
    /// multicast groups.
    Machine,
}

impl Reach {
    pub(crate) fn interfaces(self) -> Vec<IfKind> {
        let mut kinds = vec![IfKind::LoopbackV4, IfKind::LoopbackV6];
        if self == Self::Network {
            kinds.push(local_networks(|_| true));
        }
        kinds
    }
}

/// The interfaces that an announcement of these addresses goes out on. None means all; an
/// unspecified address stands for all of its family.
pub(crate) fn of_addresses(addresses: &[IpAddr]) -> Vec<IfKind> {
    if addresses.is_empty() {
        return vec![local_networks(|_| true)];
    }
    addresses.iter().map(|address| of_address(*address)).collect()
}

fn of_address(address: IpAddr) -> IfKind {
    match address {
        _ if address.is_unspecified() => {
            local_networks(move |other| other.is_ipv4() == address.is_ipv4())
        }
        // All of 127.0.0.0/8 is on the one interface.
        IpAddr::V4(v4) if v4.is_loopback() => IfKind::LoopbackV4,
        IpAddr::V6(v6) if v6.is_loopback() => IfKind::LoopbackV6,
        _ => IfKind::Addr(address),
    }
}

fn local_networks(wanted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> IfKind {
    IfKind::Predicate(IfPredicate::new(move |interface| {
        !interface.is_loopback() && !is_virtual(&interface.name) && wanted(interface.ip())
    }))
}

/// Whether an interface of this name is the machine's own: `lo`, or `lo0` elsewhere.
pub(crate) fn is_loopback(name: &str) -> bool {
    name.strip_prefix("lo").is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_interface_is_known_by_its_name() {
        assert!(is_loopback("lo") && is_loopback("lo0"));
        assert!(!is_loopback("lowpan0") && !is_loopback("eth0") && !is_loopback(""));
    }

    #[test]
    fn one_address_is_one_interface_and_loopback_is_never_meant_by_all() {
        let kinds = |text: &str| of_addresses(&[text.parse().unwrap()]);
        assert!(matches!(kinds("127.0.0.2")[..], [IfKind::LoopbackV4]));
        assert!(matches!(kinds("::1")[..], [IfKind::LoopbackV6]));
        assert!(matches!(kinds("192.0.2.7")[..], [IfKind::Addr(_)]));
        assert!(matches!(kinds("0.0.0.0")[..], [IfKind::Predicate(_)]));
        assert!(matches!(of_addresses(&[])[..], [IfKind::Predicate(_)]));
        assert!(matches!(
            Reach::Machine.interfaces()[..],
            [IfKind::LoopbackV4, IfKind::LoopbackV6]
        ));
    }
}
