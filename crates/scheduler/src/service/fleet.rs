//! For servers that act as one: reads and changes of lent and borrowed slots, under the scheduler's
//! lock.

use std::{collections::BTreeMap, sync::Arc};

use base::ProviderId;
use dispatch::Input;
use tokio::sync::Notify;

use super::{Scheduler, core::Core, note::Notes};

/// The slots of providers, while the scheduler's lock is held. What is read here stays true until a
/// change made here.
pub struct FleetAccess<'a> {
    scheduler: &'a Scheduler,
    core: &'a mut Core,
    notes: &'a mut Notes,
}

impl FleetAccess<'_> {
    /// How many slots of an own provider are free to be lent, and how many own jobs wait that more of its
    /// slots could serve.
    pub fn lendable(&self, provider: ProviderId) -> (u32, u32) {
        let dispatcher = &self.core.dispatcher;
        (dispatcher.lendable(provider), dispatcher.short(provider))
    }

    /// How many more slots are wanted of each fellow's provider.
    pub fn wants(&self) -> BTreeMap<ProviderId, u32> {
        self.core.dispatcher.wants(self.core.now).into_iter().collect()
    }

    /// How many jobs a provider has.
    pub fn in_flight(&self, provider: ProviderId) -> u32 {
        self.core.dispatcher.provider(provider).map_or(0, |view| view.in_flight)
    }

    /// Lends this number of slots of an own provider.
    pub fn lend(&mut self, provider: ProviderId, slots: u32) {
        self.handle(Input::Lend { provider, slots });
    }

    /// Sets the most jobs that may be at a fellow's provider at once.
    pub fn capacity(&mut self, provider: ProviderId, slots: u32) {
        self.handle(Input::Capacity { provider, max_concurrent: slots });
    }

    fn handle(&mut self, input: Input) {
        self.core.handle(self.scheduler, input, self.notes);
    }
}

impl Scheduler {
    /// Reads and changes what is lent and borrowed, in one step.
    pub fn fleet<T>(&self, act: impl FnOnce(&mut FleetAccess<'_>) -> T) -> T {
        // The caller knows the demand. If it were notified of its own changes, it would be called
        // again and again while a job waits.
        self.with_demand(None, |core, notes| act(&mut FleetAccess { scheduler: self, core, notes }))
    }

    /// Notified whenever jobs wait or no longer wait, since the number of fellows' slots that are
    /// wanted may have changed. The receiver must look at the demand before it waits for the next
    /// notice.
    pub fn demand(&self) -> Arc<Notify> {
        Arc::clone(self.0.demand.get_or_init(Arc::default))
    }
}
