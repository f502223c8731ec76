//! Bounds on connections and links.
//!
//! A connection that has not been greeted yet costs memory and a task, and anyone can open one.
//! Strangers may have half of these connections at most, addresses of the local network three
//! quarters. The rest is for addresses that had a link before.

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::ClientAddress;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most links at a time.
pub(super) const MAX_LINKS: usize = 256;

/// The most connections at a time that have not been greeted yet.
const MAX_HANDSHAKES: usize = 64;

/// The most of these connections from addresses of the local network without an earlier link.
const MAX_OF_LAN: usize = 48;

/// The most of these connections from strangers.
const MAX_OF_STRANGERS: usize = 32;

/// The most of these connections from one address. A whole /64 of IPv6 counts as one address.
const MAX_OF_ADDRESS: usize = 8;

/// The most of these connections from strangers with neighbouring addresses: a /24 of IPv4, a /48
/// of IPv6.
const MAX_OF_NEIGHBOURS: usize = 8;

/// The most addresses that are remembered because they had a link. The first ones stay.
const MAX_KNOWN: usize = 1_024;

/// The present connections and links.
#[derive(Debug)]
pub(super) struct Limits {
    links: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    knocking: HashMap<IpAddr, usize>,
    known: HashSet<IpAddr>,
}

/// How near the owner of an address is. Nearer owners may have more connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Stranger,
    Lan,
    Known,
}

/// Why a connection is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Full {
    /// There is no room for another link.
    #[error("this node has {MAX_LINKS} links, and takes no more")]
    Links,
    /// Too many connections have not been greeted yet.
    #[error("too many connections have not said hello yet: no more are taken for the moment")]
    Handshakes,
    /// Too many of them are from one address.
    #[error(
        "{MAX_OF_ADDRESS} connections of this address have not said hello yet: no more are taken"
    )]
    Address,
    /// Too many of them are from neighbouring addresses.
    #[error(
        "{MAX_OF_NEIGHBOURS} connections of addresses like this have not said hello yet: no more are \
         taken"
    )]
    Neighbours,
}

/// The address by which a connection is counted.
fn party(address: IpAddr) -> IpAddr {
    ClientAddress::new(address).party().ip()
}

impl Default for Limits {
    fn default() -> Self {
        Self { links: Arc::new(Semaphore::new(MAX_LINKS)), state: Mutex::default() }
    }
}

impl Limits {
    /// Counts a connection until the guard is dropped.
    pub(super) fn knock(self: &Arc<Self>, from: IpAddr) -> Result<Knock, Full> {
        if self.links.available_permits() == 0 {
            return Err(Full::Links);
        }
        let from = party(from);
        let mut state = self.lock();
        state.check(from)?;
        *state.knocking.entry(from).or_default() += 1;
        drop(state);
        Ok(Knock { limits: Arc::clone(self), from })
    }

    /// Counts a link until the permit is dropped.
    pub(super) fn link(&self) -> Result<OwnedSemaphorePermit, Full> {
        Arc::clone(&self.links).try_acquire_owned().map_err(|_| Full::Links)
    }

    /// Remembers that an address has a link.
    pub(super) fn know(&self, address: IpAddr) {
        let mut state = self.lock();
        if state.known.len() < MAX_KNOWN {
            state.known.insert(party(address));
        }
    }

    /// How many links there are.
    #[cfg(test)]
    pub(super) fn open(&self) -> usize {
        MAX_LINKS - self.links.available_permits()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check(&self, from: IpAddr) -> Result<(), Full> {
        let nearness = self.nearness(from);
        let most = match nearness {
            Nearness::Stranger => MAX_OF_STRANGERS,
            Nearness::Lan => MAX_OF_LAN,
            Nearness::Known => MAX_HANDSHAKES,
        };
        // Connections of nearer owners do not count here. Otherwise they would use up the share of
        // the others.
        if self.count(|other| self.nearness(other) <= nearness) >= most
            || self.count(|_| true) >= MAX_HANDSHAKES
        {
            return Err(Full::Handshakes);
        }
        if self.count(|other| other == from) >= MAX_OF_ADDRESS {
            return Err(Full::Address);
        }
        let is_neighbour = |other| neighbourhood(other) == neighbourhood(from);
        match nearness {
            Nearness::Stranger if self.count(is_neighbour) >= MAX_OF_NEIGHBOURS => {
                Err(Full::Neighbours)
            }
            _ => Ok(()),
        }
    }

    /// The number of counted connections from such addresses. At most [`MAX_HANDSHAKES`] addresses
    /// are looked at.
    fn count(&self, such: impl Fn(IpAddr) -> bool) -> usize {
        let such = self.knocking.iter().filter(|(address, _)| such(**address));
        such.map(|(_, count)| count).sum()
    }

    fn nearness(&self, address: IpAddr) -> Nearness {
        match self.known.contains(&address) {
            true => Nearness::Known,
            false if is_local(address) => Nearness::Lan,
            false => Nearness::Stranger,
        }
    }
}

/// Whether an address belongs to a local network, where strangers from elsewhere have no address.
fn is_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_loopback() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_loopback() || v6.is_unicast_link_local(),
    }
}

/// The network of an address. All of it may have one owner.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & 0xffff_ff00).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 80 << 80).into(),
    }
}

/// A connection that has not been greeted yet. Dropping this ends the count.
#[derive(Debug)]
pub(super) struct Knock {
    limits: Arc<Limits>,
    from: IpAddr,
}

impl Drop for Knock {
    fn drop(&mut self) {
        let mut state = self.limits.lock();
        if let Some(count) = state.knocking.get_mut(&self.from) {
            *count -= 1;
            if *count == 0 {
                state.knocking.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The accepted connections of these addresses, which try in turn until none is accepted.
    fn taken(limits: &Arc<Limits>, from: &[String]) -> Vec<Knock> {
        let mut taken = Vec::new();
        loop {
            let more = from.iter().filter_map(|from| limits.knock(ip(from)).ok());
            let before = taken.len();
            taken.extend(more);
            if taken.len() == before {
                return taken;
            }
        }
    }

    #[test]
    fn one_address_cannot_take_all_connections_and_gives_them_back() {
        let limits = Arc::new(Limits::default());
        let knocks = taken(&limits, &["192.168.7.1".to_owned()]);
        assert_eq!(knocks.len(), MAX_OF_ADDRESS);
        assert_eq!(limits.knock(ip("::ffff:192.168.7.1")).unwrap_err(), Full::Address);
        assert!(limits.knock(ip("192.168.7.2")).is_ok());
        drop(knocks);
        assert!(limits.knock(ip("192.168.7.1")).is_ok());
        assert!(limits.lock().knocking.is_empty());
    }

    #[test]
    fn neighbours_among_strangers_count_as_one() {
        for neighbours in [
            (1..9).map(|last| format!("198.51.100.{last}")).collect::<Vec<_>>(),
            (1..9).map(|network| format!("2001:db8:7:{network}::1")).collect(),
            // All of one /64.
            (1..9).map(|last| format!("2001:db8:7:7::{last}")).collect(),
        ] {
            let limits = Arc::new(Limits::default());
            assert_eq!(taken(&limits, &neighbours).len(), MAX_OF_NEIGHBOURS, "{neighbours:?}");
        }
        let limits = Arc::new(Limits::default());
        let own: Vec<_> = (1..5).map(|last| format!("10.0.0.{last}")).collect();
        assert_eq!(taken(&limits, &own).len(), 4 * MAX_OF_ADDRESS, "of the own network");
    }

    #[test]
    fn strangers_leave_room_for_the_lan_and_both_for_known_peers() {
        let limits = Arc::new(Limits::default());
        limits.know(ip("203.0.113.5"));
        let strangers: Vec<_> = (0..100).map(|number| format!("198.51.{number}.1")).collect();
        let mut connections = taken(&limits, &strangers);
        assert_eq!(connections.len(), MAX_OF_STRANGERS);
        assert_eq!(limits.knock(ip("203.0.113.4")).unwrap_err(), Full::Handshakes);
        let lan: Vec<_> = (1..100).map(|last| format!("192.168.7.{last}")).collect();
        connections.extend(taken(&limits, &lan));
        assert_eq!(connections.len(), MAX_OF_LAN);
        assert_eq!(limits.knock(ip("fd00::1")).unwrap_err(), Full::Handshakes);
        let known = taken(&limits, &["203.0.113.5".to_owned()]);
        assert_eq!(known.len(), MAX_OF_ADDRESS);
    }

    #[test]
    fn connections_and_known_addresses_are_bounded() {
        let limits = Arc::new(Limits::default());
        let known: Vec<_> =
            (0..2 * MAX_KNOWN).map(|at| format!("10.0.{}.{}", at / 256, at % 256)).collect();
        known.iter().for_each(|known| limits.know(ip(known)));
        assert_eq!(limits.lock().known.len(), MAX_KNOWN);
        assert_eq!(taken(&limits, &known).len(), MAX_HANDSHAKES);
    }

    #[test]
    fn links_are_bounded() {
        let limits = Arc::new(Limits::default());
        let links: Vec<_> = (0..MAX_LINKS).map(|_| limits.link()).collect();
        assert!(links.iter().all(Result::is_ok));
        assert_eq!(limits.link().unwrap_err(), Full::Links);
        assert_eq!(limits.knock(ip("192.0.2.1")).unwrap_err(), Full::Links);
        drop(links);
        assert!(limits.link().is_ok() && limits.knock(ip("192.0.2.1")).is_ok());
    }
}
