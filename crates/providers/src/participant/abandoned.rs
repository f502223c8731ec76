//! Requests that a participant still works on although their clients are gone: a stock participant
//! cannot be told to stop, and others need a moment.

use std::collections::{HashMap, VecDeque};

use base::JobId;

/// The most requests that are remembered. Frames about a forgotten one are also ignored, but
/// logged.
const MAX: usize = 1024;

/// The ids of abandoned requests, and their jobs.
#[derive(Default)]
pub(super) struct AbandonedRequests {
    jobs: HashMap<String, JobId>,
    order: VecDeque<String>,
}

impl AbandonedRequests {
    /// Adds a request. Returns the job of the request that it displaces, if any.
    pub(super) fn add(&mut self, id: String, job: JobId) -> Option<JobId> {
        let oldest = (self.order.len() == MAX).then(|| self.order.pop_front()).flatten();
        let forgotten = oldest.and_then(|oldest| self.jobs.remove(&oldest));
        self.order.push_back(id.clone());
        self.jobs.insert(id, job);
        forgotten
    }

    /// Removes a request that the participant has finished. Returns its job.
    pub(super) fn remove(&mut self, id: &str) -> Option<JobId> {
        let job = self.jobs.remove(id)?;
        self.order.retain(|known| known != id);
        Some(job)
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.jobs.contains_key(id)
    }

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
        let mut abandoned = AbandonedRequests::default();
        for number in 0..MAX {
            assert_eq!(abandoned.add(number.to_string(), job(number)), None);
        }
        assert_eq!(abandoned.add(MAX.to_string(), job(MAX)), Some(job(0)));
        assert!(
            !abandoned.contains("0")
                && abandoned.contains("1")
                && abandoned.contains(&MAX.to_string())
        );
        assert_eq!((abandoned.jobs.len(), abandoned.order.len()), (MAX, MAX));
    }

    #[test]
    fn a_finished_request_is_removed_once_and_makes_room() {
        let mut abandoned = AbandonedRequests::default();
        for number in 0..MAX {
            abandoned.add(number.to_string(), job(number));
        }
        assert!(abandoned.is_for(job(7)));
        assert_eq!(abandoned.remove("7"), Some(job(7)));
        assert_eq!((abandoned.remove("7"), abandoned.is_for(job(7))), (None, false));
        assert_eq!(abandoned.add("new".to_owned(), job(MAX)), None);
    }
}
