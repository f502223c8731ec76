//! Announces until it is stopped.

use std::{collections::BTreeSet, time::Duration};

use futures_util::future::join_all;
use mdns_sd::{DaemonEvent, IfKind, Receiver, ServiceInfo};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{Advertisement, DiscoveryError, interfaces, running::Running};

/// How long a withdrawal may take.
const WITHDRAWN_WITHIN: Duration = Duration::from_secs(1);

/// How long the thread that speaks mDNS may take to answer a question of ours.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Each farewell is sent again after 120 ms; it would be lost if mDNS ended before.
const SAID_TWICE: Duration = Duration::from_millis(150);

/// How long is waited, and how much is kept.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// How long an announcement may take: names are first asked for, three times, to see that
    /// nobody has them.
    announced_within: Duration,
    /// Records of others, which mDNS keeps though nobody asked for them; with more it is restarted,
    /// which forgets them.
    most_records: i64,
    /// How often they are counted.
    look: Duration,
}

const BOUNDS: Bounds = Bounds {
    announced_within: Duration::from_secs(5),
    most_records: 8_192,
    look: Duration::from_secs(2),
};

/// Services of this machine that others can find. Dropping it withdraws them, too, but does not
/// wait until that is said.
pub struct Advertiser {
    stop: CancellationToken,
    task: JoinHandle<()>,
    is_announced: watch::Receiver<bool>,
    announced_within: Duration,
}

impl Advertiser {
    /// Announces services, and answers queries for them. Needs a runtime to run in.
    ///
    /// # Errors
    /// When one is not well formed, or mDNS cannot be started.
    pub fn start(advertisements: &[Advertisement]) -> Result<Self, DiscoveryError> {
        Self::within(BOUNDS, advertisements)
    }

    fn within(bounds: Bounds, advertisements: &[Advertisement]) -> Result<Self, DiscoveryError> {
        let infos: Result<Vec<_>, _> = advertisements.iter().map(Advertisement::info).collect();
        let services = Services { infos: infos?, interfaces: interfaces_of(advertisements) };
        let announced = services.announce()?;
        let (announces, is_announced) = watch::channel(false);
        let stop = CancellationToken::new();
        let keeper = Keeper { services, announced, bounds, announces };
        let task = tokio::spawn(keeper.run(stop.clone()));
        Ok(Self { stop, task, is_announced, announced_within: bounds.announced_within })
    }

    /// Waits until all are announced on some interface, for at most 5 s.
    pub fn announced(&self) -> impl Future<Output = Result<(), DiscoveryError>> + use<> {
        let (mut is_announced, within) = (self.is_announced.clone(), self.announced_within);
        async move {
            match timeout(within, is_announced.wait_for(|all| *all)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(_)) => Err(DiscoveryError::Stopped),
                Err(_) => Err(DiscoveryError::Silent { within }),
            }
        }
    }

    /// Takes all back, so that others need not find out; done within 2 s.
    pub async fn stop(mut self) {
        self.stop.cancel();
        // It has a deadline of its own; if it panicked there is nothing left to take back.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Advertiser {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// The announced services, and where.
struct Services {
    infos: Vec<ServiceInfo>,
    interfaces: Vec<IfKind>,
}

fn interfaces_of(advertisements: &[Advertisement]) -> Vec<IfKind> {
    advertisements.iter().flat_map(|one| interfaces::of_addresses(&one.addresses)).collect()
}

/// A thread that has been told to announce, and what it says about it.
struct Announced {
    running: Running,
    events: Receiver<DaemonEvent>,
    missing: Missing,
}

impl Services {
    fn announce(&self) -> Result<Announced, DiscoveryError> {
        let running = Running::start(self.interfaces.clone())?;
        let announce = || {
            let events = running.monitor()?;
            self.infos.iter().try_for_each(|info| running.register(info.clone()))?;
            Ok(events)
        };
        let events = announce().map_err(|error| DiscoveryError::start(&error))?;
        let names = self.infos.iter().map(|info| info.get_fullname().to_lowercase());
        Ok(Announced { running, events, missing: Missing(names.collect()) })
    }
}

/// The names that are not announced yet: no more than there are services, whatever is heard.
struct Missing(BTreeSet<String>);

impl Missing {
    fn hear(&mut self, event: &DaemonEvent) {
        match event {
            DaemonEvent::Announce(name, _) => {
                self.0.remove(&name.to_lowercase());
            }
            DaemonEvent::NameChange(change) => {
                let (taken, name) = (&change.original, &change.new_name);
                // Said once for each record of that name, and each interface.
                if self.0.remove(&taken.to_lowercase()) {
                    tracing::info!(taken, name, "another has this name in mDNS: it was changed");
                    self.0.insert(name.to_lowercase());
                }
            }
            DaemonEvent::Error(error) => tracing::warn!(%error, "mDNS has trouble"),
            _ => {}
        }
    }
}

/// The thread that runs in the background.
struct Keeper {
    services: Services,
    announced: Announced,
    bounds: Bounds,
    announces: watch::Sender<bool>,
}

impl Keeper {
    /// Announces until `stop`, then takes back.
    async fn run(mut self, stop: CancellationToken) {
        let mut look = interval(self.bounds.look);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let goes_on = tokio::select! {
                () = stop.cancelled() => false,
                event = self.announced.events.recv_async() => self.hear(event.ok().as_ref()),
                _ = look.tick() => self.look().await,
            };
            if !goes_on {
                break;
            }
        }
        let withdrawal = withdraw(&self.services, &self.announced.running);
        let _ = timeout(WITHDRAWN_WITHIN, withdrawal).await;
    }

    fn hear(&mut self, event: Option<&DaemonEvent>) -> bool {
        let Some(event) = event else {
            tracing::warn!("mDNS has ended: nobody finds this server by it");
            return false;
        };
        self.announced.missing.hear(event);
        if self.announced.missing.0.is_empty() {
            self.announces.send_if_modified(|all| !std::mem::replace(all, true));
        }
        true
    }

    async fn look(&mut self) -> bool {
        if records(&self.announced.running).await <= self.bounds.most_records {
            return true;
        }
        tracing::warn!("much was said by mDNS that nobody asked for: it is started anew");
        let anew = self.services.announce();
        anew.map(|anew| self.announced = anew)
            .inspect_err(|error| tracing::warn!(%error, "nobody finds this server by mDNS"))
            .is_ok()
    }
}

/// How many records of others mDNS keeps, and how often it means to look at them again.
async fn records(running: &Running) -> i64 {
    let Ok(counts) = running.get_metrics() else { return 0 };
    let Ok(Ok(counts)) = timeout(ANSWERS_WITHIN, counts.recv_async()).await else { return 0 };
    let held = counts.iter().filter(|(name, _)| name.starts_with("cached-") || *name == "timer");
    held.map(|(_, count)| count).sum()
}

async fn withdraw(services: &Services, running: &Running) {
    let taken_back = services.infos.iter().filter_map(|info| {
        let farewell = running.unregister(info.get_fullname()).ok()?;
        Some(async move { farewell.recv_async().await })
    });
    join_all(taken_back).await;
    sleep(SAID_TWICE).await;
    if let Ok(ended) = running.shutdown() {
        let _ = ended.recv_async().await;
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, UdpSocket};

    use testkit::{DEADLINE, eventually, within};

    use super::*;
    use crate::Service;

    fn here(instance: &str) -> Advertisement {
        Advertisement {
            service: Service::Warren,
            port: 1,
            instance: instance.to_owned(),
            properties: Vec::new(),
            addresses: vec![Ipv4Addr::LOCALHOST.into()],
        }
    }

    /// An answer that nobody asked for: the addresses of 64 hosts.
    fn unasked() -> Vec<u8> {
        let mut message = vec![0, 0, 0x84, 0, 0, 0, 0, 64, 0, 0, 0, 0];
        for number in 0..64_u8 {
            let label = format!("unasked-{number:02}");
            message.push(10);
            message.extend(label.as_bytes());
            message.extend(b"\x05local\0");
            // An address (type 1) of the Internet (class 1), for two minutes, in four bytes.
            message.extend([0, 1, 0, 1, 0, 0, 0, 120, 0, 4, 127, 0, 0, number]);
        }
        message
    }

    #[tokio::test]
    async fn unrequested_records_of_strangers_are_bounded() {
        let bounds = Bounds { most_records: 48, look: Duration::from_millis(20), ..BOUNDS };
        let services = Services {
            infos: vec![here("bounded").info().unwrap()],
            interfaces: interfaces_of(&[here("bounded")]),
        };
        let first = services.announce().unwrap();
        let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let talk = || stranger.send_to(&unasked(), "224.0.0.251:5353").unwrap();
        let full = async || {
            talk();
            records(&first.running).await > bounds.most_records
        };
        eventually("it being full", DEADLINE, full).await;

        let ended = first.events.clone();
        let stop = CancellationToken::new();
        let (announces, _) = watch::channel(false);
        let keeper = Keeper { services, announced: first, bounds, announces };
        let task = tokio::spawn(keeper.run(stop.clone()));
        // A new start ends the earlier thread.
        within("a new start", async { while ended.recv_async().await.is_ok() {} }).await;
        assert!(!task.is_finished(), "it announces again");
        stop.cancel();
        within("the end", task).await.unwrap();
    }

    #[tokio::test]
    async fn an_address_that_no_interface_has_is_reported() {
        // Of a network that is for documents only (RFC 5737).
        let nowhere = vec![IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7))];
        let nowhere = [Advertisement { addresses: nowhere, ..here("nowhere") }];
        let announced_within = Duration::from_millis(10);
        let bounds = Bounds { announced_within, ..BOUNDS };
        let advertiser = Advertiser::within(bounds, &nowhere).unwrap();
        let silent = Err(DiscoveryError::Silent { within: announced_within });
        assert_eq!(within("a verdict", advertiser.announced()).await, silent);
    }

    #[tokio::test]
    async fn stopping_does_not_wait_for_the_announcement() {
        let advertiser = Advertiser::start(&[here("stopped")]).unwrap();
        let announced = advertiser.announced();
        within("the end", advertiser.stop()).await;
        assert_eq!(within("a verdict", announced).await, Err(DiscoveryError::Stopped));
    }
}
