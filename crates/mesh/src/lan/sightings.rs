//! The peers that mDNS has shown, and what changes with each sighting. Pure.
//!
//! A Warren announces itself twice: as a Warren, and as stock peers do. If both are seen, only the first counts.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use base::NodeId;
use discovery::{Discovered, Service, Sighting};
use protocol::mesh::WireId;

use super::tie::is_lower;
use crate::{facts::device_id, peer::PeerId};

/// The property by which a process recognises its own announcement.
pub(super) const INSTANCE: &str = "instance";

/// The most peers that are remembered.
const MAX_FOUND: usize = 256;

/// The node with the lower id dials at once, the other one after this time. So two nodes rarely
/// dial each other at the same moment.
const OTHER_FIRST: Duration = Duration::from_secs(3);

/// The delay before a device is dialled that may still turn out to be a Warren.
const MAY_BE_WARREN: Duration = Duration::from_secs(1);

/// A peer that was not seen for this many rounds counts as gone, since not every peer says goodbye.
const ROUNDS: u32 = 3;

/// The service that was seen, and the name of its instance in lower case.
pub(super) type Key = (Service, String);

/// A change that follows from a sighting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A peer has appeared.
    Came(Key, Found),
    /// It has other addresses.
    Moved(Key, Vec<SocketAddr>),
    /// It has gone, or is now known by another key.
    Went(Key),
}

/// A peer that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) addresses: Vec<SocketAddr>,
    /// The node id that it claims, if it announces itself as a Warren.
    pub(super) node: Option<NodeId>,
    /// Its peer id, if it names one.
    pub(super) peer: Option<PeerId>,
    /// How long this node waits for it to connect first.
    pub(super) wait: Duration,
}

/// The peers that mDNS has shown.
pub(super) struct Sightings {
    own: NodeId,
    /// Distinguishes this process from another one with its key.
    instance: String,
    device: WireId,
    found: BTreeMap<Key, SeenPeer>,
    round: u32,
}

struct SeenPeer {
    device: Option<WireId>,
    addresses: Vec<SocketAddr>,
    round: u32,
}

impl Sightings {
    /// `instance` is what this process announces as [`INSTANCE`].
    pub(super) fn new(own: NodeId, instance: String) -> Self {
        Self { own, instance, device: device_id(&own), found: BTreeMap::new(), round: 0 }
    }

    /// Takes in a sighting.
    pub(super) fn see(&mut self, sighting: Sighting) -> Vec<Change> {
        match sighting {
            Sighting::Found(found) => self.found(&found),
            Sighting::Gone { service, instance } => {
                self.went((service, instance.to_lowercase())).into_iter().collect()
            }
        }
    }

    /// Ends a round. Peers that were not seen for [`ROUNDS`] rounds are gone.
    pub(super) fn round(&mut self) -> Vec<Change> {
        self.round += 1;
        let (round, mut changes) = (self.round, Vec::new());
        self.found.retain(|key, seen| {
            let stays = seen.round + ROUNDS > round;
            if !stays {
                changes.push(Change::Went(key.clone()));
            }
            stays
        });
        changes
    }

    fn found(&mut self, found: &Discovered) -> Vec<Change> {
        let addresses = addresses(found);
        let (node, device) = (node(found), device(found));
        let is_stock = found.service == Service::Teale;
        let is_self = node == Some(self.own) && found.property(INSTANCE) == Some(&self.instance);
        let is_peer = is_stock || node.is_some() && !is_self;
        if !is_peer || addresses.is_empty() || (is_stock && self.is_known_warren(device.as_ref())) {
            return Vec::new();
        }
        let key = (found.service, found.instance.to_lowercase());
        if let Some(seen) = self.found.get_mut(&key) {
            seen.round = self.round;
            let moved = seen.addresses != addresses;
            seen.addresses.clone_from(&addresses);
            return moved.then_some(Change::Moved(key, addresses)).into_iter().collect();
        }
        if self.found.len() >= MAX_FOUND {
            return Vec::new();
        }
        let mut changes = self.replaced(node.and(device.as_ref()));
        let seen =
            SeenPeer { device: device.clone(), addresses: addresses.clone(), round: self.round };
        self.found.insert(key.clone(), seen);
        let peer = node
            .map(PeerId::Node)
            .or_else(|| device.map(|device| PeerId::Device(device.as_str().to_ascii_lowercase())));
        let wait = self.wait(node, peer.as_ref());
        let name = format!("{} ({})", found.instance, found.host);
        changes.push(Change::Came(key, Found { name, addresses, node, peer, wait }));
        changes
    }

    /// Whether a device is this machine, or a Warren that was already seen as one.
    fn is_known_warren(&self, device: Option<&WireId>) -> bool {
        let Some(device) = device else { return false };
        let warrens = self.found.iter().filter(|((service, _), _)| *service == Service::Warren);
        *device == self.device
            || warrens.into_iter().any(|(_, seen)| seen.device.as_ref() == Some(device))
    }

    /// Removes a supposed stock device that has turned out to be a Warren.
    fn replaced(&mut self, warren: Option<&WireId>) -> Vec<Change> {
        let Some(device) = warren else { return Vec::new() };
        let is_it = |(key, seen): &(&Key, &SeenPeer)| {
            key.0 == Service::Teale && seen.device.as_ref() == Some(device)
        };
        let keys: Vec<_> = self.found.iter().filter(is_it).map(|(key, _)| key.clone()).collect();
        keys.into_iter().filter_map(|key| self.went(key)).collect()
    }

    fn went(&mut self, key: Key) -> Option<Change> {
        self.found.remove(&key).map(|_| Change::Went(key))
    }

    fn wait(&self, node: Option<NodeId>, peer: Option<&PeerId>) -> Duration {
        let first = peer.is_none_or(|peer| is_lower(&self.own, peer));
        let stock = if node.is_none() { MAY_BE_WARREN } else { Duration::ZERO };
        stock + if first { Duration::ZERO } else { OTHER_FIRST }
    }
}

/// The node id that a Warren claims.
fn node(found: &Discovered) -> Option<NodeId> {
    let is_mesh = found.service == Service::Warren && found.is_mesh();
    is_mesh.then(|| found.property("node")?.parse().ok()).flatten()
}

fn device(found: &Discovered) -> Option<WireId> {
    match node(found) {
        Some(node) => Some(device_id(&node)),
        None => found.property("deviceID").map(WireId::from).filter(|id| id.uuid().is_some()),
    }
}

/// The addresses that can be dialled. A link-local IPv6 address cannot, since it needs the name of
/// an interface.
fn addresses(found: &Discovered) -> Vec<SocketAddr> {
    let usable = found.addresses.iter().filter(|address| match address {
        std::net::IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        std::net::IpAddr::V4(_) => true,
    });
    usable.map(|address| SocketAddr::new(*address, found.port)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: NodeId = NodeId::new([1; 32]);
    const MIDDLE: NodeId = NodeId::new([2; 32]);
    const HIGH: NodeId = NodeId::new([3; 32]);

    fn seen(service: Service, instance: &str, properties: &[(&str, &str)]) -> Discovered {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Discovered {
            service,
            instance: instance.to_owned(),
            host: "box.local".to_owned(),
            addresses: vec!["192.0.2.7".parse().unwrap(), "fe80::1".parse().unwrap()],
            port: 4_000,
            properties: properties.iter().map(pair).collect(),
        }
    }

    fn warren(node: &NodeId) -> Discovered {
        let id = node.to_string();
        seen(Service::Warren, &format!("Mesh {}", node.short()), &[("kind", "mesh"), ("node", &id)])
    }

    fn sightings(own: NodeId) -> Sightings {
        Sightings::new(own, "1a2b".to_owned())
    }

    fn stock(device: &str) -> Discovered {
        seen(Service::Teale, "Anna's Mac", &[("deviceID", device)])
    }

    fn came(changes: &[Change]) -> Option<&Found> {
        changes.iter().find_map(|change| match change {
            Change::Came(_, found) => Some(found),
            _ => None,
        })
    }

    #[test]
    fn a_warren_is_expected_to_be_who_it_says_and_the_lower_id_dials_first() {
        let mut sightings = sightings(MIDDLE);
        for (node, wait) in [(LOW, OTHER_FIRST), (HIGH, Duration::ZERO)] {
            let changes = sightings.see(Sighting::Found(warren(&node)));
            let found = came(&changes).unwrap();
            assert_eq!((found.node, found.wait), (Some(node), wait));
            assert_eq!(found.peer, Some(PeerId::Node(node)));
            assert_eq!(found.addresses, ["192.0.2.7:4000".parse().unwrap()]);
        }
    }

    #[test]
    fn a_server_that_takes_no_peers_is_passed_over() {
        let mut sightings = sightings(MIDDLE);
        let id = HIGH.to_string();
        for properties in
            [&[("version", "1")][..], &[("kind", "mesh")], &[("kind", "mesh"), ("node", "x")]]
        {
            let found = seen(Service::Warren, "warren-9178", properties);
            assert_eq!(sightings.see(Sighting::Found(found)), []);
        }
        let other = seen(Service::Gambi, "hub", &[("kind", "mesh"), ("node", &id)]);
        assert_eq!(sightings.see(Sighting::Found(other)), []);
    }

    #[test]
    fn a_warren_that_is_announced_as_a_stock_device_too_is_one_peer() {
        let device = device_id(&HIGH).as_str().to_uppercase();
        let mut sightings = sightings(LOW);
        let changes = sightings.see(Sighting::Found(stock(&device)));
        assert_eq!(came(&changes).unwrap().wait, MAY_BE_WARREN);
        let changes = sightings.see(Sighting::Found(warren(&HIGH)));
        assert!(matches!(&changes[..], [Change::Went((Service::Teale, _)), Change::Came(..)]));
        assert_eq!(sightings.see(Sighting::Found(stock(&device))), []);
    }

    #[test]
    fn this_process_is_no_peer_of_itself_and_another_with_its_key_is_one() {
        for (instance, is_self) in [("1a2b", true), ("3c4d", false)] {
            let mut found = warren(&LOW);
            found.properties.push((INSTANCE.to_owned(), instance.to_owned()));
            let changes = sightings(LOW).see(Sighting::Found(found));
            assert_eq!(changes.is_empty(), is_self, "{instance}");
        }
        assert!(came(&sightings(LOW).see(Sighting::Found(warren(&LOW)))).is_some(), "an older one");
    }

    #[test]
    fn this_machine_is_no_stock_device_to_itself() {
        let mut sightings = sightings(LOW);
        let own = stock(&device_id(&LOW).as_str().to_uppercase());
        assert_eq!(sightings.see(Sighting::Found(own)), []);
        assert!(came(&sightings.see(Sighting::Found(stock("")))).unwrap().peer.is_none());
    }

    #[test]
    fn a_peer_that_moves_is_reported_and_one_that_stays_is_not() {
        let mut sightings = sightings(LOW);
        sightings.see(Sighting::Found(warren(&HIGH)));
        assert_eq!(sightings.see(Sighting::Found(warren(&HIGH))), []);
        let moved = Discovered { port: 5_000, ..warren(&HIGH) };
        let changes = sightings.see(Sighting::Found(moved));
        assert!(matches!(&changes[..], [Change::Moved(_, to)] if to[0].port() == 5_000));
    }

    #[test]
    fn a_peer_that_says_goodbye_or_misses_some_rounds_is_gone() {
        let mut sightings = sightings(LOW);
        sightings.see(Sighting::Found(warren(&HIGH)));
        let (service, instance) = (Service::Warren, warren(&HIGH).instance);
        let key = (service, instance.to_lowercase());
        assert_eq!(
            sightings.see(Sighting::Gone { service, instance }),
            [Change::Went(key.clone())]
        );
        sightings.see(Sighting::Found(warren(&HIGH)));
        assert_eq!((sightings.round(), sightings.round()), (vec![], vec![]));
        assert_eq!(sightings.round(), [Change::Went(key)]);
    }

    #[test]
    fn remembered_peers_are_bounded() {
        let mut sightings = sightings(LOW);
        for number in 0..=MAX_FOUND {
            let found = Discovered { instance: number.to_string(), ..warren(&HIGH) };
            let changes = sightings.see(Sighting::Found(found));
            assert_eq!(came(&changes).is_some(), number < MAX_FOUND);
        }
    }
}
