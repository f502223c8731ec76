//! The table of invitations.

use base::KeyId;
use tokio_postgres::{Row, Transaction};

use super::{
    PostgresStore, SharedTable,
    columns::{digest, maybe, signed, text, unsigned, value},
    failure::Failure,
};
use crate::{Changes, InvitationRecord, InvitationStore, StoreError};

impl PostgresStore {
    /// The invitations that were changed after this number, and the number of the last change. `None`: all.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn changed_invitations(
        &self,
        since: Option<i64>,
    ) -> Result<(Changes<InvitationRecord>, i64), StoreError> {
        self.changes(SharedTable::Invitations, since, record)
    }
}

impl InvitationStore for PostgresStore {
    fn load_invitations(&self) -> Result<Vec<InvitationRecord>, StoreError> {
        self.changed_invitations(None).map(|(all, _)| all.records)
    }

    fn save_invitation(&self, invitation: &InvitationRecord) -> Result<(), StoreError> {
        let invitation = invitation.clone();
        self.write(async move |transaction| {
            save(transaction, &invitation, "TRUE").await?;
            Ok(())
        })
    }

    fn use_invitation(&self, invitation: &InvitationRecord) -> Result<bool, StoreError> {
        let invitation = invitation.clone();
        let is_open = "invitations.used IS NULL AND invitations.revoked IS NULL";
        self.write(async move |transaction| save(transaction, &invitation, is_open).await)
    }

    fn forget_invitation(&self, id: &str) -> Result<(), StoreError> {
        self.change("DELETE FROM invitations WHERE id = $1", vec![Box::new(text(id))]).map(drop)
    }
}

/// Stores an invitation. If there is one with its id, that is replaced, provided that it meets the condition `if_so`,
/// in SQL. Returns whether the invitation was stored.
pub(super) async fn save(
    transaction: &Transaction<'_>,
    invitation: &InvitationRecord,
    if_so: &str,
) -> Result<bool, Failure> {
    let insert = format!(
        "INSERT INTO invitations VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)
            ON CONFLICT (id) DO UPDATE SET digest = $2, name = $3, created = $4, expires = $5, used = $6, key = $7,
                revoked = $8 WHERE {if_so}"
    );
    let written = transaction
        .execute(
            &insert,
            &[
                &text(&invitation.id),
                &invitation.digest.0.as_slice(),
                &invitation.name.as_deref().map(text),
                &signed(invitation.created),
                &signed(invitation.expires),
                &invitation.used.map(signed),
                &invitation.key.as_ref().map(|key| text(key.as_str())),
                &invitation.revoked.map(signed),
            ],
        )
        .await?;
    Ok(written > 0)
}

fn record(row: &Row) -> Result<InvitationRecord, Failure> {
    Ok(InvitationRecord {
        id: value(row, "id")?,
        digest: digest(row, "digest")?,
        name: value(row, "name")?,
        created: unsigned(row, "created")?,
        expires: unsigned(row, "expires")?,
        used: maybe(row, "used")?,
        key: value::<Option<String>>(row, "key")?.map(KeyId::from),
        revoked: maybe(row, "revoked")?,
    })
}
