//! Requests that nobody waits for any more, which a participant goes on with: the protocol has no
//! word to stop it.

use std::collections::{HashSet, VecDeque};

/// The most requests that are remembered. Of one that is forgotten, what still comes is ignored all
/// the same, but not quietly.
const MAX: usize = 1024;

/// The ids of requests that nobody waits for.
#[derive(Default)]
pub(super) struct Late {
    ids: HashSet<String>,
    order: VecDeque<String>,
}

impl Late {
    /// Nobody waits for this request any more.
    pub(super) fn add(&mut self, id: String) {
        if self.order.len() == MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
        self.order.push_back(id.clone());
        self.ids.insert(id);
    }

    /// Whether this is such a request.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let mut late = Late::default();
        for number in 0..=MAX {
            late.add(number.to_string());
        }
        assert!(!late.contains("0") && late.contains("1") && late.contains(&MAX.to_string()));
        assert_eq!((late.ids.len(), late.order.len()), (MAX, MAX));
    }
}
