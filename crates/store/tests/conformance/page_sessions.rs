//! Sessions of the page.

use store::{KeyDigest, PageSessionRecord};

use super::every_store;

pub(crate) fn session(id: &str, digest: u8, created: u64) -> PageSessionRecord {
    PageSessionRecord {
        id: id.to_owned(),
        digest: KeyDigest([digest; 32]),
        key: (digest % 2 == 1).then(|| "k-1".into()),
        holder: KeyDigest([9; 32]),
        created,
        expires: 99,
        last_used: None,
        browser: "Firefox'; DROP TABLE page_sessions".to_owned(),
    }
}

#[test]
fn sessions_are_kept_as_they_are_the_oldest_first_until_they_are_forgotten() {
    every_store(|store| {
        store.save_page_session(&session("ps-2", 2, 2)).unwrap();
        store.save_page_session(&session("ps-1", 1, 1)).unwrap();
        assert_eq!(
            store.load_page_sessions().unwrap(),
            [session("ps-1", 1, 1), session("ps-2", 2, 2)]
        );
        store.touch_page_sessions(&[("ps-2".to_owned(), 50), ("gone".to_owned(), 51)]).unwrap();
        store.forget_page_session("ps-1").unwrap();
        store.forget_page_session("ps-1").unwrap();
        let used = PageSessionRecord { last_used: Some(50), ..session("ps-2", 2, 2) };
        assert_eq!(store.load_page_sessions().unwrap(), [used]);
    });
}
