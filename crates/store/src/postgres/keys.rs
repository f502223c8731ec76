//! The table of keys.

use base::{Budget, KeyId, KeyLimits, MoneyBudget, ResumeAnswers, RoomId};
use tokio_postgres::{Row, Transaction};

use super::{
    PostgresStore, SharedTable,
    columns::{digest, maybe, parsed, signed, small, text, unsigned, value},
    failure::Failure,
};
use crate::{Changes, KeyRecord, KeyStore, StoreError};

impl PostgresStore {
    /// The keys that were changed after this number, and the number of the last change. `None`: all keys.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn changed_keys(
        &self,
        since: Option<i64>,
    ) -> Result<(Changes<KeyRecord>, i64), StoreError> {
        self.changes(SharedTable::Keys, since, record)
    }
}

impl KeyStore for PostgresStore {
    fn load_keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.changed_keys(None).map(|(all, _)| all.records)
    }

    fn save_key(&self, key: &KeyRecord) -> Result<(), StoreError> {
        let key = key.clone();
        self.write(async move |transaction| save_key(transaction, &key).await)
    }

    fn forget_key(&self, id: &KeyId) -> Result<(), StoreError> {
        self.change("DELETE FROM keys WHERE id = $1", vec![Box::new(text(id.as_str()))]).map(drop)
    }

    fn touch_keys(&self, used: &[(KeyId, u64)]) -> Result<(), StoreError> {
        let update = "UPDATE keys SET last_used = GREATEST(last_used, used.at)
            FROM (SELECT * FROM unnest($1::TEXT[], $2::BIGINT[]) AS used (id, at) ORDER BY id) AS used
            WHERE keys.id = used.id";
        self.touch(update, used.iter().map(|(id, at)| (id.as_str(), *at)))
    }
}

/// Stores a key, or replaces the one with its id. A revoked key stays revoked, even if a server writes it that has not
/// heard of the revocation.
pub(super) async fn save_key(
    transaction: &Transaction<'_>,
    key: &KeyRecord,
) -> Result<(), Failure> {
    let insert = "INSERT INTO keys VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
            $17, 0, $18)
        ON CONFLICT (id) DO UPDATE SET digest = $2, name = $3, prefix = $4, scopes = $5, models = $6, rpm = $7,
            tpm = $8, concurrent = $9, budget = $10, budget_money = $11, no_cloud = $12, room = $13,
            created = $14, expires = $15, revoked = COALESCE(keys.revoked, $16),
            last_used = GREATEST(keys.last_used, $17), resume_answers = $18";
    let KeyRecord { limits, .. } = key;
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    transaction
        .execute(
            insert,
            &[
                &text(key.id.as_str()),
                &key.digest.0.as_slice(),
                &text(&key.name),
                &text(&key.prefix),
                &scopes,
                &key.models.iter().map(|model| text(model)).collect::<Vec<_>>(),
                &limits.rpm.map(i64::from),
                &limits.tpm.map(signed),
                &limits.concurrent.map(i64::from),
                &limits.budget.as_ref().map(Budget::to_string),
                &limits.budget_money.as_ref().map(MoneyBudget::to_string),
                &limits.no_cloud,
                &key.room.as_ref().map(|room| text(room.as_str())),
                &signed(key.created),
                &key.expires.map(signed),
                &key.revoked.map(signed),
                &key.last_used.map(signed),
                &limits.resume_answers.map(ResumeAnswers::as_str),
            ],
        )
        .await?;
    Ok(())
}

fn record(row: &Row) -> Result<KeyRecord, Failure> {
    let scopes: Vec<&str> = value(row, "scopes")?;
    Ok(KeyRecord {
        id: KeyId::from(value::<String>(row, "id")?),
        digest: digest(row, "digest")?,
        name: value(row, "name")?,
        prefix: value(row, "prefix")?,
        scopes: scopes.into_iter().map(parsed).collect::<Result<_, _>>()?,
        models: value(row, "models")?,
        limits: limits(row)?,
        room: value::<Option<String>>(row, "room")?.map(RoomId::from),
        created: unsigned(row, "created")?,
        expires: maybe(row, "expires")?,
        revoked: maybe(row, "revoked")?,
        last_used: maybe(row, "last_used")?,
    })
}

fn limits(row: &Row) -> Result<KeyLimits, Failure> {
    let budget: Option<&str> = value(row, "budget")?;
    let money: Option<&str> = value(row, "budget_money")?;
    let resume: Option<&str> = value(row, "resume_answers")?;
    Ok(KeyLimits {
        rpm: small(row, "rpm")?,
        tpm: maybe(row, "tpm")?,
        concurrent: small(row, "concurrent")?,
        budget: budget.map(parsed).transpose()?,
        budget_money: money.map(parsed).transpose()?,
        no_cloud: value(row, "no_cloud")?,
        resume_answers: resume.map(parsed).transpose()?,
    })
}
