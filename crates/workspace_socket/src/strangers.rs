//! Bounds the connections that have not authenticated. One address gets three quarters of the
//! slots at most, so that it cannot keep all others out.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::ClientAddress;

#[derive(Clone)]
pub(crate) struct Strangers(Arc<Mutex<Slots>>);

struct Slots {
    most: usize,
    taken: usize,
    by: HashMap<ClientAddress, usize>,
}

/// A slot, taken until this is dropped.
pub(crate) struct Stranger {
    of: Strangers,
    party: ClientAddress,
}

impl Strangers {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Mutex::new(Slots { most, taken: 0, by: HashMap::new() })))
    }

    /// A slot for a connection from this address, if there is one.
    pub(crate) fn admit(&self, from: ClientAddress) -> Option<Stranger> {
        let party = from.party();
        let mut slots = self.lock();
        let own = slots.by.get(&party).copied().unwrap_or(0);
        if slots.taken >= slots.most || own >= slots.most - slots.most / 4 {
            return None;
        }
        slots.taken += 1;
        slots.by.insert(party, own + 1);
        Some(Stranger { of: self.clone(), party })
    }

    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut slots = self.of.lock();
        slots.taken -= 1;
        let own = slots.by.remove(&self.party).unwrap_or(0);
        if own > 1 {
            slots.by.insert(self.party, own - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_not_all_places_and_all_together_no_more_than_there_are() {
        let strangers = Strangers::new(8);
        let admit = |from: &str| strangers.admit(ClientAddress::new(from.parse().unwrap()));
        let mut one: Vec<_> = std::iter::from_fn(|| admit("10.0.0.1")).collect();
        assert_eq!(one.len(), 6);
        let others = [admit("10.0.0.2"), admit("10.0.0.3"), admit("10.0.0.4")];
        assert_eq!(others.each_ref().map(Option::is_some), [true, true, false]);
        one.pop();
        assert!(admit("10.0.0.4").is_some());
        drop((one, others));
        assert!(strangers.lock().by.is_empty() && strangers.lock().taken == 0);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let strangers = Strangers::new(4);
        let admit = |last: u16| {
            strangers.admit(ClientAddress::new([0x2001, 0xdb8, 0, 0, 0, 0, 0, last].into()))
        };
        let all: Vec<_> = (1..9).filter_map(admit).collect();
        assert_eq!(all.len(), 3);
    }
}
