//! Direct links that replace relay sessions. They lead to the addresses of a peer's LAN listener.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use base::NodeId;
use tokio::time::{Instant, sleep, timeout};

use super::{Wan, memory::MAX_ADDRESSES};
use crate::{lan, link::Link};

/// The time limit for one address.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// How many addresses are tried at a time.
const AT_ONCE: usize = 2;

/// The end that did not open the session dials after this time. Usually the dial of the other end
/// is enough.
const AFTER_THE_OTHER: Duration = Duration::from_secs(6);

/// The addresses of a peer that may be dialled: at most [`MAX_ADDRESSES`], each once. A loopback
/// address is dialled only if this machine's own listener is on one. Otherwise a peer could make
/// this machine dial any of its own services.
pub(super) fn usable(claimed: &[SocketAddr], own: Option<IpAddr>) -> Vec<SocketAddr> {
    let on_loopback = own.is_some_and(|ip| ip.to_canonical().is_loopback());
    let mut usable: Vec<SocketAddr> = Vec::new();
    for address in claimed {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if is_usable(&address, on_loopback) && !usable.contains(&address) {
            usable.push(address);
        }
        if usable.len() == MAX_ADDRESSES {
            break;
        }
    }
    usable
}

fn is_usable(address: &SocketAddr, on_loopback: bool) -> bool {
    let ip = address.ip();
    let odd = match ip {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast() || ip.octets()[0] == 0,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_host = !ip.is_unspecified() && !ip.is_multicast() && !odd;
    address.port() != 0 && is_host && (on_loopback || !ip.is_loopback())
}

/// Tries to link to a peer directly, after the two have met at a mesh relay.
pub(super) fn begin(wan: &Arc<Wan>, peer: NodeId, opened_here: bool) {
    let own = Arc::clone(wan);
    wan.machine.tasks.spawn(async move {
        let trying = async {
            if !opened_here {
                sleep(AFTER_THE_OTHER).await;
            }
            reach(&own, &peer).await
        };
        own.machine.stop.run_until_cancelled(trying).await
    });
}

/// A direct link to a peer, if one of its addresses answers. Addresses that were tried a short time
/// ago are not dialled.
pub(super) async fn reach(wan: &Wan, peer: &NodeId) -> Option<Arc<Link>> {
    if wan.peers.is_near(peer) {
        return None;
    }
    let addresses = wan.memory.to_try(peer, Instant::now());
    let link = first(&addresses, |address| lan::dial_sealed(&wan.lan, address, peer)).await?;
    wan.memory.reached(peer);
    Some(link)
}

/// The first successful dial. A few addresses are tried at a time.
async fn first<F, T, E>(addresses: &[SocketAddr], dial: impl Fn(SocketAddr) -> F) -> Option<T>
where
    F: Future<Output = Result<T, E>>,
    E: std::fmt::Display,
{
    use futures_util::{StreamExt as _, stream};
    let begin = |address: &SocketAddr| {
        let (address, dialling) = (*address, timeout(ANSWERS_WITHIN, dial(*address)));
        async move {
            let dialled = dialling.await.ok()?;
            dialled.inspect_err(|why| tracing::debug!(%address, %why, "no direct link")).ok()
        }
    };
    let tries: Vec<_> = addresses.iter().map(begin).collect();
    let mut tries = stream::iter(tries).buffer_unordered(AT_ONCE);
    while let Some(tried) = tries.next().await {
        if tried.is_some() {
            return tried;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    fn addresses(announced: &[&str], own: Option<&str>) -> Vec<String> {
        let announced: Vec<SocketAddr> =
            announced.iter().map(|text| text.parse().unwrap()).collect();
        let usable = usable(&announced, own.map(|ip| ip.parse().unwrap()));
        usable.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn only_addresses_that_lead_to_another_machine_are_dialled() {
        let reported = [
            "10.0.0.7:1",
            "127.0.0.1:1",
            "[::1]:1",
            "0.0.0.0:1",
            "0.1.2.3:1",
            "169.254.169.254:80",
            "224.0.0.1:1",
            "255.255.255.255:1",
            "[fe80::1]:1",
            "[::ffff:127.0.0.1]:1",
            "10.0.0.8:0",
            "[2001:db8::7]:1",
            "[::ffff:10.0.0.7]:1",
        ];
        assert_eq!(addresses(&reported, Some("10.0.0.1")), ["10.0.0.7:1", "[2001:db8::7]:1"]);
        assert_eq!(addresses(&reported[..3], None), ["10.0.0.7:1"]);
    }

    #[test]
    fn a_listener_on_loopback_dials_there() {
        assert_eq!(addresses(&["127.0.0.1:1"], Some("127.0.0.1")), ["127.0.0.1:1"]);
        assert!(addresses(&["127.0.0.1:1"], Some("0.0.0.0")).is_empty());
    }

    #[test]
    fn tried_addresses_are_bounded() {
        let reported: Vec<String> = (1..20).map(|last| format!("10.0.0.{last}:1")).collect();
        let reported: Vec<&str> = reported.iter().map(String::as_str).collect();
        assert_eq!(addresses(&reported, None).len(), MAX_ADDRESSES);
    }

    #[tokio::test(start_paused = true)]
    async fn silent_addresses_do_not_hold_up_those_that_answer() {
        let reported = addresses_of(4);
        let start = Instant::now();
        let found = first(&reported, |address| async move {
            if address.port() == 4 {
                return Ok(address.port());
            }
            pending::<()>().await;
            Err("never")
        });
        assert_eq!((found.await, start.elapsed()), (Some(4), ANSWERS_WITHIN));
        let none = first(&reported, |_| async { Err::<(), _>("refused") });
        assert_eq!(none.await, None);
    }

    fn addresses_of(count: u16) -> Vec<SocketAddr> {
        (1..=count).map(|port| SocketAddr::from(([10, 0, 0, 7], port))).collect()
    }
}
