//! Remembers which inputs were already applied: a client that lost its connection before the
//! acknowledgement sends them again.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

/// The most ids that are remembered; beyond that, the oldest are forgotten.
pub const REMEMBERED: usize = 4096;
/// The longest id, in bytes.
pub const MAX_ID: usize = 256;

/// An id that is refused: the input was not applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an input_id has 1 to {MAX_ID} bytes, and this one has {length}: use a UUID")]
pub struct BadId {
    /// The id's length in bytes.
    pub length: usize,
}

/// The ids of the inputs that were applied to one session.
///
/// Clients choose the ids. The ids of all clients share one set: a caller that wants to keep
/// clients apart puts a prefix before their ids.
#[derive(Debug, Default)]
pub struct Applied {
    ids: HashSet<Arc<str>>,
    /// The same ids, oldest first.
    order: VecDeque<Arc<str>>,
}

impl Applied {
    /// No ids yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the id. Returns whether it is new, as far as ids are remembered: apply the input only if
    /// it is.
    ///
    /// # Errors
    /// When the id is empty or too long.
    pub fn first_time(&mut self, id: &str) -> Result<bool, BadId> {
        if id.is_empty() || id.len() > MAX_ID {
            return Err(BadId { length: id.len() });
        }
        // A repeated id does not become the newest: clients repeat only what is not acknowledged yet.
        if self.ids.contains(id) {
            return Ok(false);
        }
        let id: Arc<str> = id.into();
        self.order.push_back(Arc::clone(&id));
        self.ids.insert(id);
        self.forget_oldest();
        Ok(true)
    }

    /// The ids that are remembered, the oldest first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|id| &**id)
    }

    fn forget_oldest(&mut self) {
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_applied_once_however_often_it_comes() {
        let mut applied = Applied::new();
        let first: Vec<_> =
            ["a", "b", "a", "a", "b"].map(|id| applied.first_time(id).unwrap()).into();
        assert_eq!(first, [true, true, false, false, false]);
    }

    #[test]
    fn of_more_ids_than_are_remembered_the_oldest_are_forgotten() {
        let mut applied = Applied::new();
        for number in 0..=REMEMBERED {
            assert_eq!(applied.first_time(&number.to_string()), Ok(true));
        }
        assert_eq!((applied.ids.len(), applied.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(applied.first_time("1"), Ok(false));
        assert_eq!(applied.first_time("0"), Ok(true));
        assert_eq!(applied.first_time("1"), Ok(true));
    }

    #[test]
    fn an_id_that_is_empty_or_too_long_is_refused_and_nothing_remembered() {
        let mut applied = Applied::new();
        assert_eq!(applied.first_time(""), Err(BadId { length: 0 }));
        assert_eq!(applied.first_time(&"x".repeat(MAX_ID + 1)), Err(BadId { length: MAX_ID + 1 }));
        assert!(applied.order.is_empty());
        assert_eq!(applied.first_time(&"x".repeat(MAX_ID)), Ok(true));
    }
}
