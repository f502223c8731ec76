//! The jobs that a provider has.

use std::{borrow::Borrow, collections::HashMap, hash::Hash};

use base::{IdMap, JobId};

/// The jobs of one link, by the protocol's name for them and by their id.
pub(crate) struct Jobs<N, J> {
    jobs: HashMap<N, (JobId, J)>,
    names: IdMap<JobId, N>,
}

impl<N: Clone + Eq + Hash, J> Jobs<N, J> {
    pub(crate) fn new() -> Self {
        Self { jobs: HashMap::new(), names: IdMap::default() }
    }

    pub(crate) fn insert(&mut self, name: N, id: JobId, job: J) {
        self.names.insert(id, name.clone());
        self.jobs.insert(name, (id, job));
    }

    pub(crate) fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, name: &Q) -> Option<&mut J>
    where
        N: Borrow<Q>,
    {
        self.jobs.get_mut(name).map(|(_, job)| job)
    }

    pub(crate) fn contains<Q: Eq + Hash + ?Sized>(&self, name: &Q) -> bool
    where
        N: Borrow<Q>,
    {
        self.jobs.contains_key(name)
    }

    pub(crate) fn name_of(&self, id: JobId) -> Option<&N> {
        self.names.get(&id)
    }

    /// Takes a job out, to end it.
    pub(crate) fn take<Q: Eq + Hash + ?Sized>(&mut self, name: &Q) -> Option<(JobId, J)>
    where
        N: Borrow<Q>,
    {
        let taken = self.jobs.remove(name)?;
        self.names.remove(&taken.0);
        Some(taken)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub(crate) fn into_jobs(self) -> impl Iterator<Item = J> {
        self.jobs.into_values().map(|(_, job)| job)
    }
}
