//! The table of invitations.

use base::KeyId;
use rusqlite::{Row, Transaction, named_params};

use super::{SqliteStore, signed, unsigned};
use crate::{Changes, InvitationRecord, InvitationStore, KeyDigest, StoreError};

impl SqliteStore {
    /// Takes over changes from the store that this one is a copy of.
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    pub fn copy_invitations(&self, changes: &Changes<InvitationRecord>) -> Result<(), StoreError> {
        self.copy("invitations", changes, |transaction, it| save(transaction, it, "TRUE").map(drop))
    }
}

impl InvitationStore for SqliteStore {
    fn load_invitations(&self) -> Result<Vec<InvitationRecord>, StoreError> {
        self.rows("SELECT * FROM invitations ORDER BY created, id", [], record)
    }

    fn save_invitation(&self, invitation: &InvitationRecord) -> Result<(), StoreError> {
        self.write(|transaction| save(transaction, invitation, "TRUE").map(drop))
    }

    fn use_invitation(&self, invitation: &InvitationRecord) -> Result<bool, StoreError> {
        let is_open = "invitations.used IS NULL AND invitations.revoked IS NULL";
        self.write(|transaction| save(transaction, invitation, is_open))
    }

    fn forget_invitation(&self, id: &str) -> Result<(), StoreError> {
        self.change("DELETE FROM invitations WHERE id = ?1", [id]).map(drop)
    }
}

/// Stores an invitation. If there is one with its id, that is replaced, provided that it meets the condition `if_so`,
/// in SQL. Returns whether the invitation was stored.
fn save(
    transaction: &Transaction<'_>,
    invitation: &InvitationRecord,
    if_so: &str,
) -> rusqlite::Result<bool> {
    let insert = format!(
        "INSERT INTO invitations VALUES (:id, :digest, :name, :created, :expires, :used, :key, :revoked)
            ON CONFLICT (id) DO UPDATE SET digest = :digest, name = :name, created = :created,
                expires = :expires, used = :used, key = :key, revoked = :revoked WHERE {if_so}"
    );
    let values = named_params! {
        ":id": invitation.id,
        ":digest": invitation.digest.0,
        ":name": invitation.name,
        ":created": signed(invitation.created),
        ":expires": signed(invitation.expires),
        ":used": invitation.used.map(signed),
        ":key": invitation.key.as_ref().map(KeyId::as_str),
        ":revoked": invitation.revoked.map(signed),
    };
    transaction.execute(&insert, values).map(|written| written > 0)
}

fn record(row: &Row<'_>) -> rusqlite::Result<InvitationRecord> {
    let seconds = |name| row.get::<_, Option<i64>>(name).map(|at| at.map(unsigned));
    Ok(InvitationRecord {
        id: row.get("id")?,
        digest: KeyDigest(row.get("digest")?),
        name: row.get("name")?,
        created: unsigned(row.get("created")?),
        expires: unsigned(row.get("expires")?),
        used: seconds("used")?,
        key: row.get::<_, Option<String>>("key")?.map(KeyId::from),
        revoked: seconds("revoked")?,
    })
}
