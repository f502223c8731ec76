//! Creating, rotating and revoking keys. A change is written first and takes effect afterwards. Only a
//! revocation takes effect before it is written, and even if it cannot be.

use std::sync::{Arc, MutexGuard, PoisonError};

use base::{KeyId, KeyLimits, KeyScope, RoomId, Secret};
use rand::RngExt;
use store::{KeyRecord, StoreError};

use super::{Key, Keys, MAX_KEYS};
use crate::{
    credential::{PREFIX, digest, new_token},
    moment::Moment,
};

/// The number of characters of a key's text that are stored, for people to recognise it.
const SHOWN: usize = PREFIX.len() + 8;

/// The longest name of a key, in bytes.
const MAX_NAME: usize = 128;

/// The most models that a key may name, and the longest name of one in bytes.
const MAX_MODELS: usize = 1_000;
const MAX_MODEL: usize = 256;

/// A key to create: the body of a request with its defaults, and its room by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewKey {
    /// Its name.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<KeyScope>,
    /// The models it is for, or beginnings of names with `*` at the end. Empty: all models.
    pub models: Vec<String>,
    /// Its limits.
    pub limits: KeyLimits,
    /// When it expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// The room that it is bound to.
    pub room: Option<RoomId>,
}

/// Why a key was not changed.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// It is not valid.
    #[error("{0}")]
    Invalid(String),
    /// No key has this id.
    #[error("there is no key {0}")]
    NotFound(KeyId),
    /// It is revoked.
    #[error("the key {0} is revoked: make a new one")]
    Revoked(KeyId),
    /// There are too many keys.
    #[error("there are {MAX_KEYS} keys already: revoke some that are not used")]
    TooMany,
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was revoked, but that could not be written.
    #[error("the key no longer works, but a restart would bring it back: revoke it again later")]
    NotWritten(#[source] StoreError),
}

impl Keys {
    /// Creates a key. Its text is returned only here, and not stored. Blocks on the disk.
    ///
    /// # Errors
    /// [`KeyError`] when it is not valid, there are too many keys, or it cannot be written.
    pub fn create(&self, new: NewKey, now: Moment) -> Result<(KeyRecord, Secret), KeyError> {
        new.check(now)?;
        self.check_currency(&new.limits)?;
        let _changing = self.changing();
        self.make_room()?;
        let text = new_token(PREFIX);
        let record = KeyRecord {
            id: KeyId::from(format!("k-{:016x}", rand::rng().random::<u64>())),
            digest: digest(text.expose()),
            prefix: shown(&text),
            name: new.name,
            scopes: new.scopes,
            models: new.models,
            limits: new.limits,
            room: new.room,
            created: now.seconds(),
            expires: new.expires,
            revoked: None,
            last_used: None,
        };
        self.0.store.save_key(&record)?;
        let desk = self.desk();
        self.put(Key::new(record.clone(), desk.as_ref(), now));
        Ok((record, text))
    }

    /// Gives a key a new text. The old text no longer works, and its connections end. Usage so far
    /// still counts towards its limits. Blocks on the disk.
    ///
    /// # Errors
    /// [`KeyError`] when the key does not exist, is revoked, or cannot be written.
    pub fn rotate(&self, id: &KeyId) -> Result<(KeyRecord, Secret), KeyError> {
        let _changing = self.changing();
        let old = self.stored_key(id)?;
        let text = new_token(PREFIX);
        let record =
            KeyRecord { digest: digest(text.expose()), prefix: shown(&text), ..old.record() };
        if record.revoked.is_some() {
            return Err(KeyError::Revoked(id.clone()));
        }
        self.0.store.save_key(&record)?;
        self.put(old.changed(record.clone()));
        old.end();
        Ok((record, text))
    }

    /// Revokes a key for good, and ends its connections. A key that is already revoked stays
    /// unchanged. Blocks on the disk.
    ///
    /// # Errors
    /// [`KeyError`] when there is no such key, or the change cannot be written; the key stops
    /// working even then.
    pub fn revoke(&self, id: &KeyId, now: Moment) -> Result<KeyRecord, KeyError> {
        let _changing = self.changing();
        let old = self.stored_key(id)?;
        let record = old.record();
        let record = KeyRecord { revoked: record.revoked.or(Some(now.seconds())), ..record };
        self.put(old.changed(record.clone()));
        old.end();
        self.0.store.save_key(&record).map_err(KeyError::NotWritten)?;
        Ok(record)
    }

    fn check_currency(&self, limits: &KeyLimits) -> Result<(), KeyError> {
        let (budget, ours) = (limits.budget_money, self.prices().currency);
        match budget.map(|budget| budget.currency).filter(|currency| *currency != ours) {
            Some(other) => Err(KeyError::Invalid(format!(
                "this server counts money in {ours}, and the budget is in {other}"
            ))),
            None => Ok(()),
        }
    }

    /// Makes room for one more key: at the limit, the key that was revoked first is forgotten.
    fn make_room(&self) -> Result<(), KeyError> {
        let count = self.live().by_id.values().filter(|key| !key.is_ready_made()).count();
        if count < MAX_KEYS {
            return Ok(());
        }
        let records = self.list();
        let revoked = records.iter().filter(|record| record.revoked.is_some());
        let first = revoked.min_by_key(|record| record.revoked).ok_or(KeyError::TooMany)?;
        self.0.store.forget_key(&first.id)?;
        self.0.live.write().unwrap_or_else(PoisonError::into_inner).remove(&first.id);
        Ok(())
    }

    fn stored_key(&self, id: &KeyId) -> Result<Arc<Key>, KeyError> {
        let key = self.get(id).filter(|key| !key.is_ready_made());
        key.ok_or_else(|| KeyError::NotFound(id.clone()))
    }

    fn put(&self, key: Key) {
        self.0.live.write().unwrap_or_else(PoisonError::into_inner).put(Arc::new(key));
    }

    pub(super) fn changing(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NewKey {
    fn check(&self, now: Moment) -> Result<(), KeyError> {
        let invalid = |words: String| Err(KeyError::Invalid(words));
        let is_line = |text: &str| !text.trim().is_empty() && !text.chars().any(char::is_control);
        if !is_line(&self.name) || self.name.len() > MAX_NAME {
            return invalid(format!("a key needs a name, of at most {MAX_NAME} bytes in one line"));
        }
        if self.scopes.is_empty() {
            return invalid("a key needs a scope, such as inference".to_owned());
        }
        if self.room.is_some() && self.scopes != [KeyScope::Inference] {
            let words = "a key that is bound to a room can only have the scope inference";
            return invalid(words.to_owned());
        }
        if self.models.len() > MAX_MODELS {
            return invalid(format!("a key may name at most {MAX_MODELS} models"));
        }
        let is_model = |model: &&String| {
            is_line(model) && model.len() <= MAX_MODEL && !model.trim_end_matches('*').contains('*')
        };
        if let Some(model) = self.models.iter().find(|model| !is_model(model)) {
            return invalid(format!("{model:?} is no model: its only * may be its last character"));
        }
        if let Some(limit) = self.limits.zero() {
            return invalid(format!("a limit of 0 ({limit}) lets nothing through"));
        }
        if self.expires.is_some_and(|at| at <= now.seconds()) {
            return invalid("a key cannot expire in the past".to_owned());
        }
        Ok(())
    }
}

fn shown(text: &Secret) -> String {
    text.expose().chars().take(SHOWN).collect()
}
