//! Bounds the attempts of machines that have not proven the token.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::ClientAddress;
use tokio::time::Instant;

/// The most failures of one address within the window. An address with as many is not admitted.
const FAILURES: usize = 60;
const WINDOW: Duration = Duration::from_secs(60);
/// The most addresses that are remembered.
const ADDRESSES: usize = 1024;

/// The failures of strangers, by address.
#[derive(Default)]
pub(crate) struct Strangers(Mutex<BTreeMap<ClientAddress, VecDeque<Instant>>>);

impl Strangers {
    /// Whether an address may try again.
    pub(crate) fn admit(&self, from: ClientAddress) -> bool {
        let (mut failures, from) = (self.lock(), from.party());
        let Some(of_address) = failures.get_mut(&from) else { return true };
        let now = Instant::now();
        while of_address.front().is_some_and(|at| now.duration_since(*at) > WINDOW) {
            of_address.pop_front();
        }
        if of_address.is_empty() {
            failures.remove(&from);
            return true;
        }
        of_address.len() < FAILURES
    }

    pub(crate) fn failed(&self, from: ClientAddress) {
        let (mut failures, from) = (self.lock(), from.party());
        if failures.len() >= ADDRESSES && !failures.contains_key(&from) {
            forget_one(&mut failures);
        }
        let of_address = failures.entry(from).or_default();
        of_address.push_back(Instant::now());
        while of_address.len() > FAILURES {
            of_address.pop_front();
        }
    }

    #[cfg(test)]
    pub(crate) fn has_failures(&self) -> bool {
        !self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClientAddress, VecDeque<Instant>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the address that is missed least: one without failures in the window, or else the one
/// with the fewest, and of these the oldest. Thus a great number of addresses does
/// not lift the limit of another.
fn forget_one(failures: &mut BTreeMap<ClientAddress, VecDeque<Instant>>) {
    let now = Instant::now();
    let worth = |of_address: &VecDeque<Instant>| {
        let last = of_address.back().copied();
        let counts = last.is_some_and(|last| now.duration_since(last) <= WINDOW);
        (counts, of_address.len(), last)
    };
    let least = failures.iter().min_by_key(|(_, of_address)| worth(of_address));
    if let Some(from) = least.map(|(from, _)| *from) {
        failures.remove(&from);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_address_that_fails_too_often_waits_a_minute() {
        let strangers = Strangers::default();
        let from = ClientAddress::new(Ipv4Addr::LOCALHOST.into());
        for _ in 0..FAILURES {
            assert!(strangers.admit(from));
            strangers.failed(from);
        }
        assert!(!strangers.admit(from));
        assert!(strangers.admit(from.by_proxy()), "strangers keep out only each other");
        advance(WINDOW + Duration::from_millis(1)).await;
        assert!(strangers.admit(from));
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_do_not_lift_the_limit_of_one() {
        let strangers = Strangers::default();
        let address = |number: u32| ClientAddress::new(Ipv4Addr::from(number).into());
        (0..FAILURES).for_each(|_| strangers.failed(address(1)));
        for number in 2..2000 {
            strangers.failed(address(number));
        }
        assert!(!strangers.admit(address(1)));
        advance(WINDOW + Duration::from_millis(1)).await;
        strangers.failed(address(2000));
        strangers.failed(address(2001));
        assert!(strangers.lock().contains_key(&address(2000)), "older ones go first");
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_take_bounded_memory() {
        let strangers = Strangers::default();
        for number in 0..2000u32 {
            strangers.failed(ClientAddress::new(Ipv4Addr::from(number).into()));
        }
        assert_eq!(strangers.lock().len(), ADDRESSES);
    }
}
