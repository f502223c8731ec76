//! Keys, invitations and page sessions. They are changed in the database; each change is copied into the file once
//! this server reads it. If a copy cannot be written, the call succeeds all the same, and the next call copies all
//! again.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{MutexGuard, PoisonError},
};

use base::KeyId;

use super::{ENDED, SharedStore};
use crate::{
    Change, Changes, Fact, InvitationRecord, InvitationStore, KeyRecord, KeyStore,
    PageSessionRecord, PageSessionStore, StoreError, WorkspaceStore,
};

impl SharedStore {
    /// The changes of the keys by other servers since the last call.
    ///
    /// # Errors
    /// When the database is away.
    pub fn changed_keys(&self) -> Result<Changes<KeyRecord>, StoreError> {
        let since = self.seen().keys;
        let (changes, revision) = self.note(self.database.changed_keys(since))?;
        let is_copied = self.copy_keys(&changes).is_ok();
        self.seen().keys = is_copied.then_some(revision);
        Ok(changes)
    }

    /// Copies keys. A key that the copy alone says is revoked stays so in it: until the database has that, too, the
    /// copy is the only place on a disk.
    fn copy_keys(&self, changes: &Changes<KeyRecord>) -> Result<(), StoreError> {
        let mut copied = changes.clone();
        revoke_again(&mut copied.records, &self.own.load_keys()?);
        self.own.copy_keys(&copied)
    }

    /// The changes of invitations by other servers since the last call.
    ///
    /// # Errors
    /// When the database is away.
    pub fn changed_invitations(&self) -> Result<Changes<InvitationRecord>, StoreError> {
        let since = self.seen().invitations;
        let (changes, revision) = self.note(self.database.changed_invitations(since))?;
        let is_copied = self.own.copy_invitations(&changes).is_ok();
        self.seen().invitations = is_copied.then_some(revision);
        Ok(changes)
    }

    /// The changes of page sessions by other servers since the last call. Before that, sessions that ended while the
    /// database was away are deleted in it.
    ///
    /// # Errors
    /// When the database is away.
    pub fn changed_page_sessions(&self) -> Result<Changes<PageSessionRecord>, StoreError> {
        self.end_page_sessions()?;
        let since = self.seen().page_sessions;
        let (changes, revision) = self.note(self.database.changed_page_sessions(since))?;
        let is_copied = self.own.copy_page_sessions(&changes).is_ok();
        self.seen().page_sessions = is_copied.then_some(revision);
        Ok(changes)
    }

    fn end_page_sessions(&self) -> Result<(), StoreError> {
        let ended: Vec<String> = self.ended().iter().cloned().collect();
        for id in ended {
            self.note(self.database.forget_page_session(&id))?;
            let kind = ENDED.to_owned();
            self.own.change_facts(&[Change::Forget { kind, id: id.clone() }])?;
            self.ended().remove(&id);
        }
        Ok(())
    }

    /// Notes that a page session was ended while the database is away, also for the next start.
    fn note_ended(&self, id: &str) -> Result<(), StoreError> {
        self.ended().insert(id.to_owned());
        let (kind, id, json) = (ENDED.to_owned(), id.to_owned(), "{}".to_owned());
        self.own.change_facts(&[Change::Keep(Fact { kind, id, json })])
    }

    fn ended(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All records at a start: from the database, or else from the copy.
    fn at_start<T>(
        &self,
        answer: Result<Changes<T>, StoreError>,
        copy: Vec<T>,
    ) -> Result<Vec<T>, StoreError> {
        match answer {
            Ok(changes) => Ok(changes.records),
            Err(error) if error.is_unavailable() => Ok(copy),
            Err(error) => Err(error),
        }
    }
}

impl KeyStore for SharedStore {
    /// A key that was revoked while the database was away is returned as revoked, and its revocation is written now.
    fn load_keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        let local = self.own.load_keys()?;
        self.seen().keys = None;
        let changes = self.changed_keys();
        let is_reached = changes.is_ok();
        let mut records = self.at_start(changes, local.clone())?;
        if is_reached {
            self.note_copy()?;
            for record in revoke_again(&mut records, &local) {
                self.save_key(&record)?;
            }
        }
        Ok(records)
    }

    fn save_key(&self, key: &KeyRecord) -> Result<(), StoreError> {
        let saved = self.note(self.database.save_key(key));
        if saved.as_ref().is_err_and(StoreError::is_unavailable) && key.revoked.is_some() {
            self.own.save_key(key)?;
        }
        saved
    }

    fn forget_key(&self, id: &KeyId) -> Result<(), StoreError> {
        self.note(self.database.forget_key(id))
    }

    fn touch_keys(&self, used: &[(KeyId, u64)]) -> Result<(), StoreError> {
        self.note(self.database.touch_keys(used))
    }
}

/// Revokes the keys that are revoked in the copy alone. Returns them.
fn revoke_again(records: &mut [KeyRecord], local: &[KeyRecord]) -> Vec<KeyRecord> {
    let revoked: HashMap<&KeyId, u64> =
        local.iter().filter_map(|record| Some((&record.id, record.revoked?))).collect();
    let unaware = records.iter_mut().filter(|record| record.revoked.is_none());
    unaware
        .filter_map(|record| {
            record.revoked = Some(*revoked.get(&record.id)?);
            Some(record.clone())
        })
        .collect()
}

impl InvitationStore for SharedStore {
    fn load_invitations(&self) -> Result<Vec<InvitationRecord>, StoreError> {
        let local = self.own.load_invitations()?;
        self.seen().invitations = None;
        self.at_start(self.changed_invitations(), local)
    }

    fn save_invitation(&self, invitation: &InvitationRecord) -> Result<(), StoreError> {
        self.note(self.database.save_invitation(invitation))
    }

    fn use_invitation(&self, invitation: &InvitationRecord) -> Result<bool, StoreError> {
        self.note(self.database.use_invitation(invitation))
    }

    fn forget_invitation(&self, id: &str) -> Result<(), StoreError> {
        self.note(self.database.forget_invitation(id))
    }
}

impl PageSessionStore for SharedStore {
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError> {
        let local = self.own.load_page_sessions()?;
        self.seen().page_sessions = None;
        self.at_start(self.changed_page_sessions(), local)
    }

    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError> {
        self.note(self.database.save_page_session(session))
    }

    fn forget_page_session(&self, id: &str) -> Result<(), StoreError> {
        let forgotten = self.note(self.database.forget_page_session(id));
        if forgotten.as_ref().is_err_and(StoreError::is_unavailable) {
            self.note_ended(id)?;
            self.own.forget_page_session(id)?;
        }
        forgotten
    }

    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError> {
        self.note(self.database.touch_page_sessions(used))
    }
}
