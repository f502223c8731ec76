//! The audit log.

use store::{Action, audit::MAX_ACTIONS};

use super::every_store;

fn action(at: u64) -> Action {
    Action {
        at,
        who: "admin-token".to_owned(),
        what: "key.create".to_owned(),
        target: format!("k-{at}"),
        outcome: "done".to_owned(),
    }
}

#[test]
fn the_newest_actions_come_first() {
    every_store(|store| {
        for at in 1..=3 {
            store.add_action(&action(at)).unwrap();
        }
        assert_eq!(store.actions(2).unwrap(), [action(3), action(2)]);
        assert_eq!(store.actions(9).unwrap().len(), 3);
    });
}

/// Only in memory: a hundred thousand transactions on a disk take too long for a test.
#[test]
fn the_oldest_actions_are_forgotten_over_the_bound() {
    use store::{AuditStore, VolatileStore};
    let store = VolatileStore::default();
    for at in 0..=MAX_ACTIONS as u64 {
        store.add_action(&action(at)).unwrap();
    }
    let all = store.actions(usize::MAX).unwrap();
    assert_eq!((all.len(), all.last()), (MAX_ACTIONS, Some(&action(1))));
}
