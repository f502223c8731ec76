//! For servers that act as one: what is lent and borrowed, decided under the scheduler's lock.

use std::collections::BTreeMap;

use base::ProviderId;
use dispatch::Input;

use crate::service::{FleetCore, Scheduler};

/// The slots of providers, while the scheduler's lock is held: what is read here is true until the last change made
/// here.
pub struct FleetAccess<'a> {
    pub(crate) core: FleetCore<'a>,
}

impl FleetAccess<'_> {
    /// How many slots of an own provider are free to be lent, and how many own jobs wait that more of its
    /// slots could serve.
    pub fn lendable(&self, provider: ProviderId) -> (u32, u32) {
        let dispatcher = self.core.dispatcher();
        (dispatcher.lendable(provider), dispatcher.short(provider))
    }

    /// How many slots more are wanted of each fellow's provider.
    pub fn wants(&self) -> BTreeMap<ProviderId, u32> {
        self.core.dispatcher().wants(self.core.now()).into_iter().collect()
    }

    /// How many jobs a provider has.
    pub fn in_flight(&self, provider: ProviderId) -> u32 {
        self.core.dispatcher().provider(provider).map_or(0, |view| view.in_flight)
    }

    /// Lends this number of slots of an own provider.
    pub fn lend(&mut self, provider: ProviderId, slots: u32) {
        self.core.handle(Input::Lend { provider, slots });
    }

    /// Sets the most jobs that may be at a fellow's provider at once.
    pub fn capacity(&mut self, provider: ProviderId, slots: u32) {
        self.core.handle(Input::Capacity { provider, max_concurrent: slots });
    }
}

impl Scheduler {
    /// Reads and changes what is lent and borrowed, in one step.
    pub fn fleet<T>(&self, act: impl FnOnce(&mut FleetAccess<'_>) -> T) -> T {
        self.with_fleet(|core| act(&mut FleetAccess { core }))
    }
}
