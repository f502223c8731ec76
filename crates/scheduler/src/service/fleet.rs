//! The state behind the lock, for what fellows lend each other.

use std::{sync::Arc, time::Instant};

use dispatch::{Dispatcher, Input};
use tokio::sync::Notify;

use super::{Scheduler, core::Core, note::Notes};

/// The state while its lock is held.
pub(crate) struct FleetCore<'a> {
    scheduler: &'a Scheduler,
    core: &'a mut Core,
    notes: &'a mut Notes,
}

impl FleetCore<'_> {
    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.core.dispatcher
    }

    pub(crate) fn now(&self) -> Instant {
        self.core.now
    }

    pub(crate) fn handle(&mut self, input: Input) {
        self.core.handle(self.scheduler, input, self.notes);
    }
}

impl Scheduler {
    pub(crate) fn with_fleet<T>(&self, act: impl FnOnce(FleetCore<'_>) -> T) -> T {
        // Who acts here knows the demand. If it were reported here, it would never rest while a job waits.
        self.with_demand(None, |core, notes| act(FleetCore { scheduler: self, core, notes }))
    }

    /// Notified whenever jobs wait, or have stopped to: then more or fewer slots of fellows may be wanted. The
    /// receiver must look before it waits for the next notice.
    pub fn demand(&self) -> Arc<Notify> {
        Arc::clone(self.0.demand.get_or_init(Arc::default))
    }
}
