//! Invitations of a server: each lets one machine join, which gets a key of scope `worker` of its own.
//!
//! - `refresh`: what other servers have changed
//! - `state`: what may be done with one invitation (pure)

mod refresh;
mod state;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::{KeyScope, Secret};
use store::{InvitationRecord, InvitationStore, KeyRecord, StoreError};
use subtle::ConstantTimeEq;
use tokio::sync::Notify;

pub use self::state::{InvitationState, NotJoined};
use crate::{
    credential::digest,
    keys::{KeyError, Keys, NewKey},
    moment::Moment,
};

/// The most invitations that are open at once.
pub const MAX_OPEN: usize = 100;

/// The most invitations that are remembered. Beyond that, the oldest of those that are over are forgotten.
const MAX_KEPT: usize = 1_000;

/// The longest that an invitation may be good for.
pub const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The shortest that an invitation may be good for: its end is kept in seconds.
const SHORTEST: Duration = Duration::from_secs(1);

/// The longest name of a machine, in bytes.
const MAX_NAME: usize = 64;

/// The invitations of a server; clones share them.
#[derive(Clone)]
pub struct Invitations(Arc<Inner>);

struct Inner {
    store: Arc<dyn InvitationStore>,
    keys: Keys,
    /// The oldest first. Held for a whole change, including the write to the disk.
    all: Mutex<Vec<Entry>>,
    changed: Notify,
}

#[derive(Clone)]
struct Entry {
    record: InvitationRecord,
    /// Whether it is on the disk. An invitation for this run of the server alone is written only once it is used.
    stored: bool,
}

/// An invitation to make.
#[derive(Debug, Clone)]
pub struct NewInvitation {
    /// The id, which follows from the secret.
    pub id: String,
    /// The text of its secret.
    pub secret: Secret,
    /// The name of the machine that it is for. Without one the machine names itself.
    pub name: Option<String>,
    /// How long it is good for.
    pub lasts: Duration,
    /// Whether it stays open after a restart of the server.
    pub stored: bool,
}

/// Why an invitation was not made, or was not revoked.
#[derive(Debug, thiserror::Error)]
pub enum InvitationError {
    /// It is not valid.
    #[error("{0}")]
    Invalid(String),
    /// There are too many.
    #[error("{MAX_OPEN} invitations are open already: revoke some with `warren invite revoke`")]
    TooMany,
    /// None has this id or name.
    #[error("there is no invitation {0:?}: `warren invite list` shows all")]
    NotFound(String),
    /// Several have this name.
    #[error("several invitations are called {0:?}: name one by its id")]
    Ambiguous(String),
    /// The key of the machine could not be revoked.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An invitation with the key of the machine that joined by it.
pub type WithKey = (InvitationRecord, Option<KeyRecord>);

impl Invitations {
    /// Loads the invitations in `store`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(store: Arc<dyn InvitationStore>, keys: Keys) -> Result<Self, StoreError> {
        let loaded = store.load_invitations()?;
        let all = loaded.into_iter().map(|record| Entry { record, stored: true }).collect();
        Ok(Self(Arc::new(Inner { store, keys, all: Mutex::new(all), changed: Notify::new() })))
    }

    /// Makes an invitation. Blocks on the disk.
    ///
    /// # Errors
    /// [`InvitationError`] when it is not valid, there are too many, or it cannot be written.
    pub fn create(
        &self,
        new: NewInvitation,
        now: Moment,
    ) -> Result<InvitationRecord, InvitationError> {
        let name = new.name.map(|name| checked(&name)).transpose()?;
        if new.lasts < SHORTEST || new.lasts > LONGEST {
            let words = "an invitation is good for a second at least, and for 30 days at most";
            return Err(InvitationError::Invalid(words.to_owned()));
        }
        let record = InvitationRecord {
            id: new.id,
            digest: digest(new.secret.expose()),
            name,
            created: now.seconds(),
            expires: now.after(new.lasts).seconds(),
            used: None,
            key: None,
            revoked: None,
        };
        let mut all = self.all();
        if all.iter().filter(|entry| self.state(&entry.record, now).is_open()).count() >= MAX_OPEN {
            return Err(InvitationError::TooMany);
        }
        if new.stored {
            self.0.store.save_invitation(&record)?;
        }
        all.push(Entry { record: record.clone(), stored: new.stored });
        self.make_room(&mut all, now);
        self.0.changed.notify_waiters();
        Ok(record)
    }

    /// Uses an invitation up: the machine gets a key of its own, whose text is returned only here. `machine` is
    /// the name that the machine gives itself. Blocks on the disk.
    ///
    /// # Errors
    /// [`NotJoined`], in words for the person at the machine.
    pub fn join(
        &self,
        secret: &str,
        machine: &str,
        now: Moment,
    ) -> Result<(KeyRecord, Secret), NotJoined> {
        let mut all = self.all();
        let presented = digest(secret);
        let matches = |entry: &&mut Entry| bool::from(entry.record.digest.0.ct_eq(&presented.0));
        let entry = all.iter_mut().find(matches).ok_or(NotJoined::Unknown)?;
        state::may_join(&entry.record, now)?;
        let name = entry.record.name.clone().map_or_else(|| checked(machine), Ok);
        let name = name.map_err(|error| NotJoined::Name(error.to_string()))?;
        let scopes = vec![KeyScope::Worker];
        let (key, text) = self.0.keys.create(NewKey { name, scopes, ..NewKey::default() }, now)?;
        let (used, of) = (Some(now.seconds()), Some(key.id.clone()));
        let record = InvitationRecord { used, key: of, ..entry.record.clone() };
        let stored = self.0.store.use_invitation(&record);
        if !stored.as_ref().is_ok_and(|is_first| *is_first) {
            // Nobody has the new key. If its revocation cannot be written either, a restart brings it back, but
            // still nobody has it.
            let _ = self.0.keys.revoke(&key.id, now);
            // Another server has let a machine join by this invitation, or has revoked it, and this server has not
            // heard of that yet.
            return Err(stored.err().map_or(NotJoined::Used, NotJoined::from));
        }
        *entry = Entry { record, stored: true };
        self.0.changed.notify_waiters();
        Ok((key, text))
    }

    /// Revokes an invitation. `meant` is its id, its name or the name of the machine that joined by it. If a machine
    /// has joined, its key is revoked, too. Blocks on the disk.
    ///
    /// # Errors
    /// [`InvitationError`] when no invitation has that name, when several have it, or when the change cannot be written.
    /// A change that cannot be written holds until the server ends.
    pub fn revoke(&self, meant: &str, now: Moment) -> Result<WithKey, InvitationError> {
        let mut all = self.all();
        let at = self.meant(&all, meant, now)?;
        let entry = &mut all[at];
        entry.record.revoked = entry.record.revoked.or(Some(now.seconds()));
        let key = entry.record.key.as_ref().map(|key| self.0.keys.revoke(key, now));
        self.0.changed.notify_waiters();
        if entry.stored {
            self.0.store.save_invitation(&entry.record)?;
        }
        Ok((entry.record.clone(), key.transpose()?))
    }

    /// All invitations, the oldest first.
    pub fn list(&self) -> Vec<WithKey> {
        let all: Vec<InvitationRecord> =
            self.all().iter().map(|entry| entry.record.clone()).collect();
        all.into_iter()
            .map(|record| (self.key(&record), record))
            .map(|(key, record)| (record, key))
            .collect()
    }

    /// The SHA-256 by which the server proves to a machine which server it is. `of` is the id of an invitation, in
    /// whatever state, or that of the key of a machine that joined: the SHA-256 is of the invitation's secret or of
    /// the key.
    pub fn digest(&self, of: &str, now: Moment) -> Option<[u8; 32]> {
        let all = self.all();
        if let Some(entry) = all.iter().find(|entry| entry.record.id == of) {
            return Some(entry.record.digest.0);
        }
        let is_of =
            |entry: &&Entry| entry.record.key.as_ref().is_some_and(|key| key.as_str() == of);
        let entry = all.iter().find(is_of)?;
        let key = self.key(&entry.record).filter(|_| self.state(&entry.record, now).is_joined())?;
        Some(key.digest.0)
    }

    /// Whether a machine may be looking for this server: one that joined, or one that has an open invitation.
    pub fn expects_machines(&self, now: Moment) -> bool {
        let counts = |entry: &Entry| {
            let state = self.state(&entry.record, now);
            state.is_open() || state.is_joined()
        };
        self.all().iter().any(counts)
    }

    /// Waits for the next change from this call on.
    pub fn changed(&self) -> impl Future<Output = ()> {
        self.0.changed.notified()
    }

    /// The state of an invitation.
    pub fn state(&self, record: &InvitationRecord, now: Moment) -> InvitationState {
        let key_is_valid = self.key(record).is_some_and(|key| key.revoked.is_none());
        InvitationState::of(record, key_is_valid, now)
    }

    fn key(&self, record: &InvitationRecord) -> Option<KeyRecord> {
        let key = record.key.as_ref()?;
        self.0.keys.get(key).map(|key| key.record())
    }

    fn meant(&self, all: &[Entry], meant: &str, now: Moment) -> Result<usize, InvitationError> {
        if let Some(at) = all.iter().position(|entry| entry.record.id == meant) {
            return Ok(at);
        }
        let is_called = |entry: &Entry| {
            let key = self.key(&entry.record).map(|key| key.name);
            entry.record.name.as_deref() == Some(meant) || key.as_deref() == Some(meant)
        };
        let is_over = |entry: &Entry| self.state(&entry.record, now).is_over();
        let named = |over: bool| {
            let found = all
                .iter()
                .enumerate()
                .filter(move |(_, entry)| is_called(entry) && is_over(entry) == over);
            found.map(|(at, _)| at).collect::<Vec<_>>()
        };
        // A machine may join again under its old name. Then the name means only the invitation that still works.
        let found =
            Some(named(false)).filter(|found| !found.is_empty()).unwrap_or_else(|| named(true));
        match found[..] {
            [] => Err(InvitationError::NotFound(meant.to_owned())),
            [at] => Ok(at),
            _ => Err(InvitationError::Ambiguous(meant.to_owned())),
        }
    }

    /// Forgets the oldest invitations that are over or, if there are none, the oldest that machines joined by, which keep
    /// their keys.
    fn make_room(&self, all: &mut Vec<Entry>, now: Moment) {
        while all.len() > MAX_KEPT {
            let is_over = |entry: &Entry| self.state(&entry.record, now).is_over();
            let is_open = |entry: &Entry| self.state(&entry.record, now).is_open();
            let joined = || all.iter().position(|entry| !is_open(entry));
            // All are open only if other servers have made too many at once.
            let at = all.iter().position(is_over).or_else(joined).unwrap_or(0);
            // If it stays on the disk, the next start loads it, and a later call forgets it again.
            let _ = self.0.store.forget_invitation(&all[at].record.id);
            all.remove(at);
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Invitations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invitations({})", self.all().len())
    }
}

/// A machine's name, if it is one.
fn checked(name: &str) -> Result<String, InvitationError> {
    let name = name.trim();
    if name.is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
        let words = format!("a machine needs a name, of at most {MAX_NAME} bytes in one line");
        return Err(InvitationError::Invalid(words));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests;
