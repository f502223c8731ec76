//! Taking over what other servers have changed.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
};

use base::KeyId;
use store::{Changes, KeyRecord, StoreError};

use super::{Key, Keys, LiveKeys, MAX_KEYS};
use crate::moment::Moment;

/// The most keys that are held, whatever others have put into the store.
const MOST: usize = 2 * MAX_KEYS;

/// The meaning of a record in the store for the key with its id.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// There was no such key.
    New,
    /// Nothing has changed.
    Same,
    /// It still works, with other fields.
    Changed,
    /// It has another text: connections with the old one end.
    Rotated,
    /// It works no more.
    Revoked,
    /// It was revoked here, and that could not be written.
    Unwritten,
}

/// The work that remains beside the change of the keys in memory.
#[derive(Default)]
struct News {
    /// Keys that work no more.
    revoked: Vec<KeyId>,
    /// Revocations that have to be written again.
    unwritten: Vec<KeyRecord>,
}

impl Keys {
    /// Takes over the changes that `load` reads. Returns the keys that were revoked by them: their running answers
    /// have to end. Blocks on the store.
    ///
    /// # Errors
    /// When they cannot be read, or a revocation of this server's cannot be written.
    pub fn refresh(
        &self,
        load: impl FnOnce() -> Result<Changes<KeyRecord>, StoreError>,
        now: Moment,
    ) -> Result<Vec<KeyId>, StoreError> {
        // Held while they are read: records that were read before a change of this server's own must not undo it.
        let _changing = self.changing();
        let changes = load()?;
        let news =
            self.0.live.write().unwrap_or_else(PoisonError::into_inner).take_over(changes, now);
        news.unwritten.iter().try_for_each(|record| self.0.store.save_key(record))?;
        Ok(news.revoked)
    }
}

impl LiveKeys {
    fn take_over(&mut self, changes: Changes<KeyRecord>, now: Moment) -> News {
        let mut news = News::default();
        if changes.whole {
            self.remove_others(&changes.records, &mut news);
        }
        for record in changes.records {
            self.take(record, now, &mut news);
        }
        news
    }

    /// Removes the stored keys that are not among these.
    fn remove_others(&mut self, records: &[KeyRecord], news: &mut News) {
        let left: HashSet<&KeyId> = records.iter().map(|record| &record.id).collect();
        let is_gone = |key: &&Arc<Key>| !key.is_ready_made() && !left.contains(key.id());
        let mut gone: Vec<_> = self.by_id.values().filter(is_gone).cloned().collect();
        gone.sort_by(|a, b| a.id().cmp(b.id()));
        for key in gone {
            key.end();
            self.remove(key.id());
            news.revoked.push(key.id().clone());
        }
    }

    fn take(&mut self, stored: KeyRecord, now: Moment, news: &mut News) {
        let known = self.by_id.get(&stored.id).cloned();
        if known.as_ref().is_some_and(|key| key.is_ready_made()) {
            return;
        }
        let verdict = Verdict::of(known.as_ref().map(|key| key.record()).as_ref(), &stored);
        match known {
            Some(known) => self.replace(&known, stored, &verdict, now, news),
            None if self.by_id.len() < MOST => {
                self.put(Arc::new(Key::new(stored, self.desk.as_ref(), now)));
            }
            None => {}
        }
    }

    fn replace(
        &mut self,
        known: &Arc<Key>,
        mut stored: KeyRecord,
        verdict: &Verdict,
        now: Moment,
        news: &mut News,
    ) {
        if *verdict == Verdict::Same {
            return known.was_used(stored.last_used);
        }
        if *verdict == Verdict::Unwritten {
            stored.revoked = known.record().revoked;
            news.unwritten.push(stored.clone());
        }
        if *verdict == Verdict::Revoked {
            news.revoked.push(stored.id.clone());
        }
        let new = match stored.limits == *known.limits() {
            true => known.changed(stored),
            false => known.limited(stored, now),
        };
        if *verdict == Verdict::Changed {
            return self.put(Arc::new(new.with_connections_of(known)));
        }
        self.put(Arc::new(new));
        known.end();
    }
}

impl Verdict {
    fn of(known: Option<&KeyRecord>, stored: &KeyRecord) -> Self {
        let Some(known) = known else { return Self::New };
        let last_used = stored.last_used;
        match (known.revoked, stored.revoked) {
            (Some(_), None) => Self::Unwritten,
            (None, Some(_)) => Self::Revoked,
            _ if known.digest != stored.digest => Self::Rotated,
            _ if (KeyRecord { last_used, ..known.clone() }) == *stored => Self::Same,
            _ => Self::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Waker},
        time::Duration,
    };

    use base::{KeyLimits, KeyScope, Secret};
    use store::{KeyDigest, KeyStore, VolatileStore};

    use super::*;
    use crate::{consumer::Denied, credential::digest, keys::NewKey};

    fn record(id: &str, text: &str) -> KeyRecord {
        KeyRecord {
            id: id.into(),
            digest: digest(text),
            name: id.to_owned(),
            prefix: String::new(),
            scopes: vec![KeyScope::Inference],
            models: Vec::new(),
            limits: KeyLimits { rpm: Some(2), ..KeyLimits::default() },
            room: None,
            created: 1,
            expires: None,
            revoked: None,
            last_used: None,
        }
    }

    fn changes(whole: bool, records: &[KeyRecord]) -> Changes<KeyRecord> {
        Changes { whole, records: records.to_vec() }
    }

    fn works(keys: &Keys, text: &str, now: Moment) -> Result<bool, Denied> {
        keys.present(text, KeyScope::Inference, now).map(|key| key.is_some())
    }

    #[test]
    fn each_difference_has_one_meaning() {
        let known = record("k", "a");
        let verdict = |change: fn(&mut KeyRecord)| {
            let mut stored = known.clone();
            change(&mut stored);
            Verdict::of(Some(&known), &stored)
        };
        assert_eq!(Verdict::of(None, &known), Verdict::New);
        assert_eq!(verdict(|_| {}), Verdict::Same);
        assert_eq!(verdict(|it| it.last_used = Some(5)), Verdict::Same);
        assert_eq!(verdict(|it| it.name = "b".to_owned()), Verdict::Changed);
        assert_eq!(verdict(|it| it.digest = KeyDigest([1; 32])), Verdict::Rotated);
        assert_eq!(verdict(|it| it.revoked = Some(5)), Verdict::Revoked);
        let revoked = KeyRecord { revoked: Some(5), ..known.clone() };
        assert_eq!(Verdict::of(Some(&revoked), &known), Verdict::Unwritten);
        assert_eq!(Verdict::of(Some(&revoked), &revoked), Verdict::Same);
    }

    #[test]
    fn what_another_server_did_holds_here() {
        let (keys, now) = (Keys::default(), Moment::now());
        let take = |changes| keys.refresh(|| Ok(changes), now).unwrap();
        assert_eq!(take(changes(true, &[record("k-1", "a"), record("k-2", "b")])), []);
        assert_eq!((works(&keys, "a", now), works(&keys, "b", now)), (Ok(true), Ok(true)));
        let first = keys.get(&"k-1".into()).unwrap();
        assert_eq!(take(changes(false, &[record("k-1", "c")])), [], "rotated");
        assert_eq!((works(&keys, "a", now), works(&keys, "c", now)), (Ok(false), Ok(true)));
        let revoked = KeyRecord { revoked: Some(9), ..record("k-1", "c") };
        assert_eq!(take(changes(false, std::slice::from_ref(&revoked))), ["k-1".into()]);
        assert_eq!(take(changes(false, &[revoked])), [], "a second time");
        assert_eq!(works(&keys, "c", now), Err(Denied::KeyRevoked));
        assert_eq!(take(changes(true, &[])), ["k-1".into(), "k-2".into()].as_slice());
        assert_eq!(works(&keys, "b", now), Ok(false));
        assert!(!first.end(), "its connections have ended");
    }

    #[test]
    fn the_use_of_a_key_still_counts_after_a_change_that_is_not_of_its_limits() {
        let (keys, now) = (Keys::default(), Moment::now());
        let take = |record| keys.refresh(|| Ok(changes(false, &[record])), now).unwrap();
        let may = |number| {
            let key = keys.get(&"k".into()).unwrap();
            key.reserve(base::JobId::from_random(number), 1, now).is_ok()
        };
        take(record("k", "a"));
        assert!(may(1));
        take(KeyRecord { name: "other".to_owned(), ..record("k", "a") });
        assert!(may(2) && !may(3));
        let limits = KeyLimits { rpm: Some(9), ..KeyLimits::default() };
        take(KeyRecord { limits, ..record("k", "a") });
        assert!(may(4));
    }

    #[test]
    fn connections_from_before_a_change_end_with_the_key_and_not_with_the_change() {
        let (keys, now) = (Keys::default(), Moment::now());
        let take = |record| keys.refresh(|| Ok(changes(false, &[record])), now).unwrap();
        let has_ended =
            |key: &Key| pin!(key.ended()).poll(&mut Context::from_waker(Waker::noop())).is_ready();
        take(record("k", "a"));
        let first = keys.get(&"k".into()).unwrap();
        let renamed = KeyRecord { name: "other".to_owned(), ..record("k", "a") };
        take(renamed.clone());
        assert!(!has_ended(&first));
        take(KeyRecord { revoked: Some(9), ..renamed });
        assert!(has_ended(&first));
    }

    #[test]
    fn a_revocation_that_could_not_be_written_is_written_when_the_store_is_back() {
        let (store, now) = (Arc::new(VolatileStore::default()), Moment::now());
        let keys = Keys::open(Arc::<VolatileStore>::clone(&store), now).unwrap();
        let new =
            NewKey { name: "a".to_owned(), scopes: vec![KeyScope::Inference], ..NewKey::default() };
        let (made, text): (KeyRecord, Secret) = keys.create(new, now).unwrap();
        store.fail_writes(true);
        let later = now.after(Duration::from_secs(3));
        keys.revoke(&made.id, later).unwrap_err();
        store.fail_writes(false);
        let records = store.load_keys().unwrap();
        assert_eq!(keys.refresh(|| Ok(Changes { whole: true, records }), now).unwrap(), []);
        assert_eq!(works(&keys, text.expose(), now), Err(Denied::KeyRevoked));
        assert_eq!(store.load_keys().unwrap()[0].revoked, Some(later.seconds()));
    }

    #[test]
    fn ready_made_keys_stay_and_of_too_many_stored_keys_only_some_are_held() {
        let (keys, now) = (Keys::default(), Moment::now());
        keys.add_ready_made("client-token".into(), &"t".into(), &[KeyScope::Inference], now);
        let mine = KeyRecord { revoked: Some(1), ..record("client-token", "t") };
        let many = (0..MOST + 9).map(|number| record(&format!("k-{number}"), &number.to_string()));
        let all: Vec<_> = many.chain([mine]).collect();
        keys.refresh(|| Ok(changes(true, &all)), now).unwrap();
        assert_eq!(works(&keys, "t", now), Ok(true));
        assert_eq!(keys.live().by_id.len(), MOST);
    }

    #[test]
    fn nothing_changes_when_the_store_cannot_be_read() {
        let (keys, now) = (Keys::default(), Moment::now());
        keys.refresh(|| Ok(changes(true, &[record("k", "a")])), now).unwrap();
        let failed = || Err(StoreError::Address { problem: String::new() });
        keys.refresh(failed, now).unwrap_err();
        assert_eq!(works(&keys, "a", now), Ok(true));
    }
}
