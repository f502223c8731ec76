//! Models that were seen.

use store::SeenModel;

use super::every_own_store;

pub(crate) fn seen(model: &str, first: u64, last: u64) -> SeenModel {
    SeenModel { scope: "server".into(), model: model.into(), first, last }
}

#[test]
fn models_are_kept_and_replaced() {
    every_own_store(|store| {
        store.save_models(&[seen("a", 1, 1), seen("b", 1, 5)], 0).unwrap();
        store.save_models(&[seen("a", 1, 9)], 0).unwrap();
        let mut all = store.load_models().unwrap();
        all.sort_by(|one, other| one.model.cmp(&other.model));
        assert_eq!(all, [seen("a", 1, 9), seen("b", 1, 5)]);
    });
}

#[test]
fn old_models_are_forgotten() {
    every_own_store(|store| {
        store.save_models(&[seen("a", 1, 1), seen("b", 1, 5)], 5).unwrap();
        assert_eq!(store.load_models().unwrap(), [seen("b", 1, 5)]);
    });
}
