//! Requests that a participant still works on although nobody waits for them: a stock one cannot be
//! told to stop, and others need a moment.

use std::collections::{HashMap, VecDeque};

use base::JobId;

/// The most requests that are remembered. Of one that is forgotten, what still comes is ignored all
/// the same, but not quietly.
const MAX: usize = 1024;

/// The ids of requests that nobody waits for, and the jobs that they were for.
#[derive(Default)]
pub(super) struct Late {
    jobs: HashMap<String, JobId>,
    order: VecDeque<String>,
}

impl Late {
    /// Adds a request that nobody waits for any more. Returns the job of the request that is forgotten
    /// to make room.
    pub(super) fn add(&mut self, id: String, job: JobId) -> Option<JobId> {
        let oldest = (self.order.len() == MAX).then(|| self.order.pop_front()).flatten();
        let forgotten = oldest.and_then(|oldest| self.jobs.remove(&oldest));
        self.order.push_back(id.clone());
        self.jobs.insert(id, job);
        forgotten
    }

    /// The participant has finished such a request. Returns its job.
    pub(super) fn remove(&mut self, id: &str) -> Option<JobId> {
        let job = self.jobs.remove(id)?;
        self.order.retain(|known| known != id);
        Some(job)
    }

    /// Whether this is such a request.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.jobs.contains_key(id)
    }

    /// Whether one of them was for this job.
    pub(super) fn is_for(&self, job: JobId) -> bool {
        self.jobs.values().any(|known| *known == job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(number: usize) -> JobId {
        JobId::from_random(number as u128)
    }

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut late = Late::default();
        for number in 0..MAX {
            assert_eq!(late.add(number.to_string(), job(number)), None);
        }
        assert_eq!(late.add(MAX.to_string(), job(MAX)), Some(job(0)));
        assert!(!late.contains("0") && late.contains("1") && late.contains(&MAX.to_string()));
        assert_eq!((late.jobs.len(), late.order.len()), (MAX, MAX));
    }

    #[test]
    fn one_that_is_over_is_so_once_and_leaves_its_place() {
        let mut late = Late::default();
        for number in 0..MAX {
            late.add(number.to_string(), job(number));
        }
        assert!(late.is_for(job(7)));
        assert_eq!(late.remove("7"), Some(job(7)));
        assert_eq!((late.remove("7"), late.is_for(job(7))), (None, false));
        assert_eq!(late.add("new".to_owned(), job(MAX)), None);
    }
}
