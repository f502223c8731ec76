//! Announces this machine on the local network, and finds others there.

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use discovery::{Advertisement, Advertiser, Browser, Service};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{
    Lan,
    keep::{PeerAddress, Target, keep},
    sightings::{Change, Found, INSTANCE, Key, Sightings},
};
use crate::peer::PeerId;

/// How long one round of browsing takes. Then a new round asks all machines again.
const ROUND: Duration = Duration::from_secs(60);

/// How long until mDNS is tried again after it could not be started.
const AGAIN: Duration = Duration::from_secs(60);

/// The longest text of a property, in bytes.
const MAX_TEXT: usize = 100;

/// The longest name of a service, in bytes (RFC 6763 section 4.1.1).
const MAX_NAME: usize = 63;

/// Announces the listener, which is bound at `bound`. `None` if that fails; the machine still takes
/// part in the mesh.
pub(super) fn announce(lan: &Lan, bound: SocketAddr) -> Option<Advertiser> {
    let started = Advertiser::start(&advertisements(lan, bound));
    started.inspect_err(|error| tracing::warn!(%error, "no peer finds this node by mDNS")).ok()
}

/// The text by which this process recognises its own announcement.
fn instance(lan: &Lan) -> String {
    format!("{:016x}", lan.instance)
}

fn advertisements(lan: &Lan, bound: SocketAddr) -> [Advertisement; 2] {
    let hello = lan.machine.facts.hello(false);
    let hardware = &hello.device_info.hardware;
    let device = lan.machine.facts.device_id().as_str().to_ascii_uppercase();
    let stock = [
        ("deviceID", device),
        ("chip", clip(&hardware.chip_name, MAX_TEXT)),
        ("ram", format!("{:.0}", hardware.total_ram_gb)),
        ("version", "1".to_owned()),
    ];
    let own = [
        ("kind", "mesh".to_owned()),
        ("node", lan.machine.id().to_string()),
        ("version", lan.machine.settings.version.to_owned()),
        ("name", clip(&lan.machine.settings.name, MAX_TEXT)),
        ("psk", u8::from(lan.machine.psk.is_some()).to_string()),
        (INSTANCE, instance(lan)),
    ];
    let instance = format!("warren-mesh-{}", lan.machine.id().short());
    [
        advertisement(
            Service::Teale,
            bound,
            &stock_name(&lan.machine.settings.name, &instance),
            &stock,
        ),
        advertisement(Service::Warren, bound, &instance, &own),
    ]
}

/// The device's name, as stock peers have it.
fn stock_name(name: &str, otherwise: &str) -> String {
    let clean: String = name.chars().filter(|c| !c.is_control()).collect();
    let name = clip(clean.trim(), MAX_NAME);
    if name.is_empty() { otherwise.to_owned() } else { name }
}

fn advertisement(
    service: Service,
    bound: SocketAddr,
    instance: &str,
    properties: &[(&str, String)],
) -> Advertisement {
    let addresses = discovery::advertisement::reachable_at(bound.ip());
    let pair = |(key, value): &(&str, String)| ((*key).to_owned(), value.clone());
    Advertisement {
        service,
        port: bound.port(),
        instance: instance.to_owned(),
        properties: properties.iter().map(pair).collect(),
        addresses,
    }
}

fn clip(text: &str, max: usize) -> String {
    protocol::json::clip(text, max).to_owned()
}

/// Looks for peers and keeps a link to each that is found; never ends.
pub(super) async fn look(lan: Arc<Lan>) {
    let mut finder = Finder {
        sightings: Sightings::new(lan.machine.id(), instance(&lan)),
        targets: HashMap::new(),
        tasks: JoinSet::new(),
        lan,
    };
    loop {
        let over = Instant::now() + AGAIN;
        finder.round().await;
        // The next round is not begun at once: mDNS may have failed or ended early, and would do so
        // again.
        sleep_until(over).await;
    }
}

struct Finder {
    lan: Arc<Lan>,
    sightings: Sightings,
    targets: HashMap<Key, FoundPeer>,
    /// The tasks of the targets. They end when this is dropped.
    tasks: JoinSet<()>,
}

/// A peer to which a task keeps a link.
struct FoundPeer {
    addresses: watch::Sender<Vec<SocketAddr>>,
    task: tokio::task::AbortHandle,
}

impl Finder {
    async fn round(&mut self) {
        let services = [Service::Warren, Service::Teale];
        match Browser::start(&services, self.lan.machine.settings.reach, ROUND) {
            Ok(mut browser) => {
                while let Some(sighting) = browser.next().await {
                    let changes = self.sightings.see(sighting);
                    self.apply(changes);
                }
            }
            Err(error) => tracing::warn!(%error, "peers are not looked for by mDNS"),
        }
        let changes = self.sightings.round();
        self.apply(changes);
        // Otherwise the set would keep every task that has ended.
        while self.tasks.try_join_next().is_some() {}
    }

    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Came(key, found) => self.came(key, found),
                Change::Moved(key, addresses) => {
                    if let Some(target) = self.targets.get(&key) {
                        target.addresses.send_replace(addresses);
                    }
                }
                Change::Went(key) => {
                    if let Some(target) = self.targets.remove(&key) {
                        target.task.abort();
                    }
                }
            }
        }
    }

    fn came(&mut self, key: Key, found: Found) {
        let Found { name, addresses, node: expects, peer, wait } = found;
        let short = peer.as_ref().map(PeerId::short);
        tracing::info!(name, peer = short, "mDNS has found a peer");
        let (addresses, newest) = watch::channel(addresses);
        let target = Target { name, address: PeerAddress::Found(newest), expects, peer, wait };
        let task = self.tasks.spawn(keep(Arc::clone(&self.lan), target));
        self.targets.insert(key, FoundPeer { addresses, task });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stock_name_fits_into_a_label_and_is_never_empty() {
        assert_eq!(stock_name(" Anna's\n Mac ", "x"), "Anna's Mac");
        assert_eq!(stock_name(&"é".repeat(50), "x").len(), 62);
        assert_eq!(stock_name(" \u{7f} ", "x"), "x");
    }
}
