//! Invitations.

use store::{InvitationRecord, KeyDigest};

use super::every_store;

fn invitation(id: &str, digest: u8, created: u64) -> InvitationRecord {
    InvitationRecord {
        id: id.to_owned(),
        digest: KeyDigest([digest; 32]),
        name: (digest % 2 == 1).then(|| "gpu'box".to_owned()),
        created,
        expires: 99,
        used: None,
        key: None,
        revoked: None,
    }
}

#[test]
fn invitations_are_kept_as_they_are_the_oldest_first_until_they_are_forgotten() {
    every_store(|store| {
        let used = InvitationRecord {
            used: Some(5),
            key: Some("k-1".into()),
            revoked: Some(6),
            ..invitation("i-2", 2, 2)
        };
        store.save_invitation(&invitation("i-2", 2, 2)).unwrap();
        store.save_invitation(&used).unwrap();
        store.save_invitation(&invitation("i-1", 1, 1)).unwrap();
        assert_eq!(store.load_invitations().unwrap(), [invitation("i-1", 1, 1), used.clone()]);
        store.forget_invitation("i-1").unwrap();
        store.forget_invitation("i-1").unwrap();
        assert_eq!(store.load_invitations().unwrap(), [used]);
    });
}

#[test]
fn an_invitation_is_used_once_whoever_stores_it() {
    every_store(|store| {
        let used = |key: &str| InvitationRecord {
            used: Some(5),
            key: Some(key.into()),
            ..invitation("i-1", 1, 1)
        };
        store.save_invitation(&invitation("i-1", 1, 1)).unwrap();
        assert!(store.use_invitation(&used("k-1")).unwrap());
        assert!(!store.use_invitation(&used("k-2")).unwrap());
        assert_eq!(store.load_invitations().unwrap(), [used("k-1")]);
        let revoked = InvitationRecord { revoked: Some(4), ..invitation("i-2", 2, 2) };
        store.save_invitation(&revoked).unwrap();
        let late = InvitationRecord { used: Some(5), ..invitation("i-2", 2, 2) };
        assert!(!store.use_invitation(&late).unwrap());
        assert!(
            store
                .use_invitation(&InvitationRecord { used: Some(6), ..invitation("i-3", 3, 3) })
                .unwrap()
        );
        assert_eq!(store.load_invitations().unwrap().len(), 3, "one that was not stored before is");
    });
}
