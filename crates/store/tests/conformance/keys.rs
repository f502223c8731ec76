//! Keys.

use base::{Budget, KeyLimits, KeyScope, Period};
use store::{KeyDigest, KeyRecord};

use super::every_store;

pub(crate) fn key(id: &str, digest: u8, created: u64) -> KeyRecord {
    KeyRecord {
        id: id.into(),
        digest: KeyDigest([digest; 32]),
        name: format!("{id}'s, \"quoted\"; DROP TABLE keys"),
        prefix: "wk_01234".to_owned(),
        scopes: vec![KeyScope::Inference, KeyScope::Metrics],
        models: vec!["qwen3-8b".to_owned(), "llama3*".to_owned()],
        limits: KeyLimits {
            rpm: Some(60),
            tpm: Some(u64::from(u32::MAX) + 1),
            concurrent: Some(3),
            budget: Some(Budget { tokens: 1_000_000, per: Period::Month }),
            budget_money: Some("5.25EUR/day".parse().unwrap()),
            no_cloud: true,
            resume_answers: Some(base::ResumeAnswers::Off),
        },
        created,
        expires: Some(99),
        revoked: None,
        room: (digest % 2 == 1).then(|| "r1".into()),
        last_used: None,
    }
}

#[test]
fn keys_are_kept_as_they_are_the_oldest_first() {
    every_store(|store| {
        let plain = KeyRecord {
            scopes: Vec::new(),
            models: Vec::new(),
            limits: KeyLimits::default(),
            expires: None,
            ..key("k-plain", 1, 2)
        };
        store.save_key(&plain).unwrap();
        store.save_key(&key("k-full", 2, 1)).unwrap();
        assert_eq!(store.load_keys().unwrap(), [key("k-full", 2, 1), plain]);
    });
}

#[test]
fn a_key_is_replaced_under_its_id() {
    every_store(|store| {
        store.save_key(&key("k", 1, 1)).unwrap();
        let rotated = KeyRecord { revoked: Some(7), ..key("k", 2, 1) };
        store.save_key(&rotated).unwrap();
        assert_eq!(store.load_keys().unwrap(), [rotated]);
    });
}

#[test]
fn two_keys_never_have_the_same_text() {
    every_store(|store| {
        store.save_key(&key("k-1", 1, 1)).unwrap();
        assert!(store.save_key(&key("k-2", 1, 2)).is_err());
        assert_eq!(store.load_keys().unwrap(), [key("k-1", 1, 1)], "nothing is lost");
    });
}

#[test]
fn the_last_use_is_noted_and_keys_are_forgotten() {
    every_store(|store| {
        store.save_key(&key("k-1", 1, 1)).unwrap();
        store.save_key(&key("k-2", 2, 2)).unwrap();
        store.touch_keys(&[("k-2".into(), 50), ("k-gone".into(), 51)]).unwrap();
        store.forget_key(&"k-1".into()).unwrap();
        store.forget_key(&"k-gone".into()).unwrap();
        let used = KeyRecord { last_used: Some(50), ..key("k-2", 2, 2) };
        assert_eq!(store.load_keys().unwrap(), [used]);
    });
}
