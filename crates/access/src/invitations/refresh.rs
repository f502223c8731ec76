//! Taking over what other servers have changed.

use std::collections::HashMap;

use store::{Changes, InvitationRecord, StoreError};

use super::{Entry, Invitations, MAX_KEPT};

/// The most invitations that are held, whatever others have put into the store.
const MOST: usize = 2 * MAX_KEPT;

impl Invitations {
    /// Takes over the invitations that other servers have made, used or revoked, which `load` reads. Blocks on the
    /// store.
    ///
    /// # Errors
    /// When they cannot be read, or a revocation of this server's cannot be written.
    pub fn refresh(
        &self,
        load: impl FnOnce() -> Result<Changes<InvitationRecord>, StoreError>,
    ) -> Result<(), StoreError> {
        let mut all = self.all();
        let changes = load()?;
        let unwritten = take_over(&mut all, changes);
        self.0.changed.notify_waiters();
        unwritten.iter().try_for_each(|record| self.0.store.save_invitation(record))
    }
}

/// Puts the changes into the list. Returns the revocations that have to be written again.
fn take_over(all: &mut Vec<Entry>, changes: Changes<InvitationRecord>) -> Vec<InvitationRecord> {
    let Changes { whole, records } = changes;
    let mut changed: HashMap<String, InvitationRecord> =
        records.into_iter().map(|record| (record.id.clone(), record)).collect();
    let mut unwritten = Vec::new();
    all.retain_mut(|entry| match changed.remove(&entry.record.id) {
        Some(record) => {
            let revoked = entry.record.revoked.filter(|_| record.revoked.is_none());
            entry.record = InvitationRecord { revoked: record.revoked.or(revoked), ..record };
            unwritten.extend(revoked.map(|_| entry.record.clone()));
            true
        }
        None => !(whole && entry.stored),
    });
    let room = MOST.saturating_sub(all.len());
    all.extend(changed.into_values().take(room).map(|record| Entry { record, stored: true }));
    all.sort_by(|a, b| (a.record.created, &a.record.id).cmp(&(b.record.created, &b.record.id)));
    unwritten
}
