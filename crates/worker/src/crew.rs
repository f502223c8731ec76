//! The backends that a worker lends now. Each has a task, which ends when the backend is drained.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Lend, Protocol},
    context::LinkContext,
    event::Event,
    lent::LentBackend,
    link, models,
    node::slots,
    outcome::WorkerEnd,
    worker::Worker,
};

/// All backends that have not been drained to their end.
#[derive(Debug, Default)]
pub(crate) struct Backends(Mutex<Vec<Arc<LentBackend>>>);

impl Backends {
    pub(crate) fn of(lent: &[Arc<LentBackend>]) -> Self {
        Self(Mutex::new(lent.to_vec()))
    }

    pub(crate) fn sum(&self, of: impl Fn(&LentBackend) -> u64) -> u64 {
        self.all(|all| all.iter().map(|lent| of(lent)).sum())
    }

    fn all<T>(&self, with: impl FnOnce(&mut Vec<Arc<LentBackend>>) -> T) -> T {
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The tasks of all backends, and the found backends that are not being drained.
pub(crate) struct Crew<'a> {
    worker: &'a Worker,
    shutdown: CancellationToken,
    /// The found backends by their places, each with the token that withdraws it.
    backends: HashMap<String, (CancellationToken, Arc<LentBackend>)>,
    /// The found backends by their places that were withdrawn last, as long as they have jobs.
    withdrawn: HashMap<String, Weak<LentBackend>>,
    pub(crate) tasks: JoinSet<WorkerEnd>,
}

impl<'a> Crew<'a> {
    pub(crate) fn new(worker: &'a Worker, shutdown: CancellationToken) -> Self {
        let (backends, withdrawn) = (HashMap::new(), HashMap::new());
        Self { worker, shutdown, backends, withdrawn, tasks: JoinSet::new() }
    }

    /// Lends exactly these found backends. A backend that is no longer among them finishes its jobs and
    /// leaves.
    pub(crate) fn follow(&mut self, wanted: &[Lend]) {
        let events = self.worker.events.clone();
        self.withdrawn.retain(|_, lent| lent.strong_count() > 0);
        self.backends.retain(|place, (withdrawn, lent)| {
            let stays = wanted.iter().any(|lend| lend.place() == place);
            if !stays {
                // Its links drain: they finish the jobs that they have.
                withdrawn.cancel();
                self.withdrawn.insert(place.clone(), Arc::downgrade(lent));
                events.send(&Event::Withdrawn { backend: lent.backend().label().to_owned() });
            }
            stays
        });
        for lend in wanted {
            if !self.backends.contains_key(lend.place()) {
                self.add(lend);
            }
        }
    }

    /// Lends a backend until `withdrawn`.
    pub(crate) fn lend(
        &mut self,
        lent: Arc<LentBackend>,
        is_alone: bool,
        withdrawn: &CancellationToken,
    ) {
        let (protocol, every) = (self.worker.config.protocol, self.worker.config.poll_interval);
        let links = self.worker.links(&lent, is_alone, withdrawn);
        let (present, events) = (Arc::clone(&self.worker.present), self.worker.events.clone());
        let keeper = models::watch(Arc::clone(&lent), every, events);
        self.tasks.spawn(async move {
            let _present = Guard(present, lent);
            // Dropped, and so ended, when the links have ended.
            let mut keepers = JoinSet::new();
            keepers.spawn(keeper);
            run(links, protocol).await
        });
    }

    fn add(&mut self, lend: &Lend) {
        let config = &self.worker.config;
        match LentBackend::new(lend, Arc::clone(&config.aliases), config.patience) {
            Ok(lent) => {
                let lent = lent.traced_by(config.traces.clone());
                // A backend that is found again while it ends earlier jobs has no more slots than before.
                let left = self.withdrawn.get(lend.place()).and_then(Weak::upgrade);
                let lent = Arc::new(match left {
                    Some(left) => lent.with_slots_of(&left),
                    None => lent,
                });
                let withdrawn = self.shutdown.child_token();
                // Only the first link gets the worker's bare name, since two links of one name could not
                // be distinguished.
                let is_alone = config.backends.is_empty() && self.backends.is_empty();
                let entry = (withdrawn.clone(), Arc::clone(&lent));
                self.backends.insert(lend.place().to_owned(), entry);
                // Registered before its links begin, so that its first job is counted.
                self.worker.present.all(|all| all.push(Arc::clone(&lent)));
                self.lend(lent, is_alone, &withdrawn);
            }
            Err(error) => tracing::warn!(place = lend.place(), %error, "it cannot be lent"),
        }
    }
}

/// Removes a backend from the present ones when its task ends, also by a panic.
struct Guard(Arc<Backends>, Arc<LentBackend>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.all(|all| all.retain(|lent| !Arc::ptr_eq(lent, &self.1)));
    }
}

/// Keeps the links of a backend until each has ended.
async fn run(links: Vec<LinkContext>, protocol: Protocol) -> WorkerEnd {
    let mut tasks = JoinSet::new();
    for link in links {
        match protocol {
            Protocol::Node => tasks.spawn(slots::run(link)),
            _ => tasks.spawn(link::run(link)),
        };
    }
    let mut all = WorkerEnd::default();
    while let Some(link) = tasks.join_next().await {
        // A link whose task has panicked must not end the others.
        let link = link.unwrap_or_default();
        all.cut_off += link.cut_off;
        all.gave_up = link.gave_up.or(all.gave_up);
    }
    all
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use backend::DemoConfig;
    use tokio::sync::watch;

    use super::*;
    use crate::{
        config::{ServerTarget, WorkerConfig},
        dialer::{DialFuture, Dialer},
    };

    /// Never makes a link.
    struct Nowhere;

    impl Dialer for Nowhere {
        fn dial<'a>(&'a self, _: &'a ServerTarget) -> DialFuture<'a> {
            Box::pin(pending())
        }
    }

    #[tokio::test]
    async fn a_backend_that_is_found_again_while_it_ends_its_jobs_has_no_more_slots() {
        let server = ServerTarget::new("http://server", None).unwrap();
        let config = WorkerConfig { servers: vec![server], ..WorkerConfig::new("w") };
        let worker = Worker::following(config, watch::channel(Vec::new()).1, Nowhere).unwrap();
        let mut crew = Crew::new(&worker, CancellationToken::new());
        let found = [Lend::Demo(DemoConfig { tokens_per_second: 0, max_concurrent: 1 })];
        crew.follow(&found);
        let before = Arc::clone(&crew.backends["demo"].1);
        let job = before.slot().await;
        crew.follow(&[]);
        crew.follow(&found);
        let again = Arc::clone(&crew.backends["demo"].1);
        assert!(!Arc::ptr_eq(&before, &again));
        assert!(!again.has_slot());
        drop(job);
        assert!(again.has_slot());
    }
}
