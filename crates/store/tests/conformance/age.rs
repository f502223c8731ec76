//! How far the time for deleting by age has come.

use super::every_store;

#[test]
fn the_last_stored_time_is_read() {
    every_store(|store| {
        assert_eq!(store.load_reached().unwrap(), None);
        for at in [7, 9] {
            store.save_reached(at).unwrap();
            assert_eq!(store.load_reached().unwrap(), Some(at));
        }
    });
}
