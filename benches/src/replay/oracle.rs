//! The policy that no server can have: it sees into the caches of all model servers.

use std::{
    cmp::Reverse,
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base::{JobId, ModelName, ProviderId};
use dispatch::{Candidate, JobSpec, Known, LeastLoaded, Policy};

use super::engine::Engine;

/// The model servers, and the prompts of jobs that wait for them.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    pub(crate) engines: Vec<Engine>,
    pub(crate) prompts: HashMap<JobId, Vec<u8>>,
}

/// Shared between the simulation and the oracle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Servers>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Servers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the worker that knows most of the prompt, within the load that Warren's policy allows, too; and it knows for whom to
/// wait.
#[derive(Debug)]
pub(crate) struct Oracle(pub(crate) Shared);

impl Policy for Oracle {
    fn choose(&mut self, job: &JobSpec, candidates: &[Candidate]) -> usize {
        let servers = self.0.lock();
        let Some(prompt) = servers.prompts.get(&job.id) else { return 0 };
        let least = candidates.iter().map(|candidate| candidate.load).min().unwrap_or_default();
        let known = |candidate: &Candidate| {
            let engine = servers.engines.get(worker(candidate.provider))?;
            (candidate.load <= least + (candidate.capacity / 4).max(2))
                .then(|| engine.known(prompt))
        };
        let known: Vec<Option<usize>> = candidates.iter().map(known).collect();
        let most = known.iter().flatten().max().copied();
        let places = (0..candidates.len()).filter(|place| known[*place] == most);
        let places: Vec<usize> = places.collect();
        let best: Vec<Candidate> = places.iter().map(|place| candidates[*place]).collect();
        let chosen = LeastLoaded.choose(job, &best);
        places.get(chosen).copied().unwrap_or_default()
    }

    fn known(&self, job: &JobSpec, _: &ModelName) -> Known {
        let servers = self.0.lock();
        let mut known = Known::default();
        let Some(prompt) = servers.prompts.get(&job.id) else { return known };
        let held = servers.engines.iter().map(|engine| engine.holds(prompt)).zip(0..);
        let mut held: Vec<(usize, u64)> = held.filter(|(bytes, _)| *bytes > 0).collect();
        held.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
        for (bytes, worker) in held {
            known.note(ProviderId::from_random(worker), u32::try_from(bytes).unwrap_or(u32::MAX));
        }
        known
    }
}

/// The number of a worker is its id.
pub(crate) fn worker(provider: ProviderId) -> usize {
    usize::try_from(provider.bits()).unwrap_or(usize::MAX)
}
