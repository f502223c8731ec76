//! The members whose sessions the clients of this machine were shown as reachable.

use std::{
    collections::BTreeSet,
    mem::take,
    sync::{Mutex, PoisonError},
};

/// The members whose sessions the clients of this machine were shown as reachable. It holds members that
/// were linked, or have objects: as many as the directory has.
#[derive(Default)]
pub(crate) struct ShownReach(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    reachable: BTreeSet<String>,
    /// Members with a session that was shown with another reachability than their other sessions.
    uneven: BTreeSet<String>,
}

impl ShownReach {
    /// Notes that a session of this member is shown as reachable, or as out of reach.
    pub(crate) fn shown(&self, node: &str, reachable: bool) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.reachable.contains(node) != reachable {
            inner.uneven.insert(node.to_owned());
        }
    }

    /// Sets which members are reachable. Returns the members whose sessions must be shown again, so that all
    /// are shown so.
    pub(crate) fn update(&self, reachable: &BTreeSet<String>) -> BTreeSet<String> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut inner.reachable, reachable.clone());
        let mut changed = take(&mut inner.uneven);
        changed.extend(before.symmetric_difference(reachable).cloned());
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(nodes: &[&str]) -> BTreeSet<String> {
        nodes.iter().map(|node| (*node).to_owned()).collect()
    }

    #[test]
    fn members_that_come_or_go_are_shown_again() {
        let reach = ShownReach::default();
        assert_eq!(reach.update(&set(&["a", "b"])), set(&["a", "b"]));
        assert_eq!(reach.update(&set(&["b", "c"])), set(&["a", "c"]));
        reach.shown("b", true);
        assert_eq!(reach.update(&set(&["b", "c"])), set(&[]));
    }

    #[test]
    fn one_that_came_and_went_between_two_looks_is_shown_again_if_a_session_was_shown() {
        let reach = ShownReach::default();
        reach.shown("a", true);
        assert_eq!(reach.update(&set(&[])), set(&["a"]));
        assert_eq!(reach.update(&set(&["a"])), set(&["a"]));
        reach.shown("a", false);
        assert_eq!(reach.update(&set(&["a"])), set(&["a"]));
    }
}
