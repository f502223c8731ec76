//! The models that this machine's own providers serve now.

use base::{Endpoint, Scope};
use scheduler::{Distance, Status, WorkerStatus};

use crate::share::{Share, Sharing};

/// The most models that are announced.
const MAX_MODELS: usize = 1_024;

/// The models that this machine's own providers serve to peers now, and their load.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ServedModels {
    /// The models that peers may ask for, in order.
    pub(crate) models: Vec<String>,
    /// How many requests of a peer are answered at once; at least 1.
    pub(crate) capacity: u32,
    /// How many requests are answered at once, including those of this machine.
    pub(crate) of_all: u32,
    /// Requests that are being answered, including those of this machine.
    pub(crate) in_flight: u32,
    /// Requests that wait.
    pub(crate) queue_depth: u32,
    /// Tokens a second: the mean of the providers whose speed is known.
    pub(crate) speed: Option<f64>,
}

impl ServedModels {
    /// The models of this machine's own providers, and their load. Peers that are providers here are
    /// left out, since they announce their models themselves.
    pub(crate) fn of(status: &Status, share: &Share) -> Self {
        let own: Vec<_> = status.workers.iter().filter(|worker| is_own(worker)).collect();
        let sum = |of: fn(&WorkerStatus) -> u32| {
            own.iter().map(|worker| of(worker)).fold(0, u32::saturating_add)
        };
        let of_all = sum(|worker| worker.max_concurrent);
        let server = Scope::server();
        let waiting = status.queues.iter().filter(|queue| queue.scope == server);
        let queue_depth: usize = waiting.map(|queue| queue.len).sum();
        let limits = [share.jobs, share.jobs_per_peer].into_iter().flatten();
        Self {
            models: models(&own, share),
            capacity: limits.fold(of_all, u32::min).max(1),
            of_all,
            in_flight: sum(|worker| worker.in_flight),
            queue_depth: u32::try_from(queue_depth).unwrap_or(u32::MAX),
            speed: mean(own.iter().filter_map(|worker| worker.speed)),
        }
    }

    /// The part of the capacity that this machine's own requests use, from 0 to 1. `lent` of the
    /// running requests are requests of peers.
    pub(crate) fn own_load(&self, lent: u32) -> f64 {
        let own = self.in_flight.saturating_sub(lent);
        f64::from(own) / f64::from(self.of_all.max(1))
    }
}

fn is_own(worker: &WorkerStatus) -> bool {
    let serves = worker.endpoints.contains(Endpoint::ChatCompletions);
    worker.distance == Distance::Here
        && worker.scope == Scope::server()
        && serves
        && !worker.draining
}

fn models(own: &[&WorkerStatus], share: &Share) -> Vec<String> {
    if share.with == Sharing::Off {
        return Vec::new();
    }
    let all = own.iter().flat_map(|worker| worker.models.iter());
    let offered = all.filter(|model| !model.is_wildcard() && share.offers(model.as_str()));
    let mut models: Vec<_> = offered.map(|model| model.as_str().to_owned()).collect();
    models.sort_unstable();
    models.dedup();
    models.truncate(MAX_MODELS);
    models
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}
