//! Announcements of other servers: that something may have changed, and that they need what this server holds of
//! limits.

use std::{
    collections::BTreeSet,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::KeyId;
use tokio::sync::Notify;

/// The beginning of a notification about the limits of a key.
pub(super) const LIMITS: &str = "limits ";

/// The most keys that are noted. A server that needs something of another key asks again.
const MOST_RECALLED: usize = 10_000;

/// Wakes those that wait for announcements.
#[derive(Default)]
pub(super) struct Bell {
    rung: Mutex<bool>,
    ringing: Condvar,
    recalled: Mutex<BTreeSet<KeyId>>,
    recalling: Notify,
}

impl Bell {
    /// Notes that something may have changed.
    pub(super) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.ringing.notify_all();
    }

    /// Handles the content of a notification.
    pub(super) fn hear(&self, said: &str) {
        match said.strip_prefix(LIMITS) {
            Some(key) => self.recall(KeyId::from(key)),
            None => self.ring(),
        }
    }

    /// Waits until it rings, or for this long. Returns at once if it has rung since the last wait.
    pub(super) fn wait(&self, most: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ringing.wait_timeout_while(rung, most, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }

    /// Waits until other servers need what this server holds of keys' limits. Returns these keys.
    pub(super) async fn recalled(&self) -> Vec<KeyId> {
        loop {
            let recalled = std::mem::take(&mut *self.keys());
            if !recalled.is_empty() {
                return recalled.into_iter().collect();
            }
            self.recalling.notified().await;
        }
    }

    fn recall(&self, key: KeyId) {
        let mut keys = self.keys();
        if keys.len() < MOST_RECALLED {
            keys.insert(key);
        }
        drop(keys);
        self.recalling.notify_one();
    }

    fn keys(&self) -> MutexGuard<'_, BTreeSet<KeyId>> {
        self.recalled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_keys_are_told_apart_and_keys_are_bounded() {
        let bell = Bell::default();
        bell.hear("keys");
        assert!(*bell.rung.lock().unwrap());
        bell.wait(Duration::ZERO);
        (0..MOST_RECALLED + 9).for_each(|number| bell.hear(&format!("limits k-{number}")));
        assert!(!*bell.rung.lock().unwrap(), "no change");
        assert_eq!(bell.keys().len(), MOST_RECALLED);
    }
}
