//! The table of keys.

use base::{Budget, KeyId, KeyLimits, MoneyBudget, ResumeAnswers, RoomId};
use rusqlite::{Row, Transaction, named_params};

use super::{SqliteStore, parsed, signed, unsigned};
use crate::{Changes, KeyDigest, KeyRecord, KeyStore, StoreError};

impl SqliteStore {
    /// Takes over changes from the store that this one is a copy of.
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    pub fn copy_keys(&self, changes: &Changes<KeyRecord>) -> Result<(), StoreError> {
        self.copy("keys", changes, save_key)
    }
}

impl KeyStore for SqliteStore {
    fn load_keys(&self) -> Result<Vec<KeyRecord>, StoreError> {
        self.rows("SELECT * FROM keys ORDER BY created, id", [], record)
    }

    fn save_key(&self, key: &KeyRecord) -> Result<(), StoreError> {
        self.write(|transaction| save_key(transaction, key))
    }

    fn forget_key(&self, id: &KeyId) -> Result<(), StoreError> {
        self.change("DELETE FROM keys WHERE id = ?1", [id.as_str()]).map(drop)
    }

    fn touch_keys(&self, used: &[(KeyId, u64)]) -> Result<(), StoreError> {
        let used = used.iter().map(|(id, at)| (id.as_str(), *at));
        self.touch("UPDATE keys SET last_used = ?2 WHERE id = ?1", used)
    }
}

fn record(row: &Row<'_>) -> rusqlite::Result<KeyRecord> {
    let seconds = |name| row.get::<_, Option<i64>>(name).map(|at| at.map(unsigned));
    let text = |name| row.get::<_, Option<String>>(name);
    Ok(KeyRecord {
        id: KeyId::from(row.get::<_, String>("id")?),
        digest: KeyDigest(row.get("digest")?),
        name: row.get("name")?,
        prefix: row.get("prefix")?,
        scopes: lines(&row.get::<_, String>("scopes")?).map(parsed).collect::<Result<_, _>>()?,
        models: lines(&row.get::<_, String>("models")?).map(str::to_owned).collect(),
        limits: KeyLimits {
            rpm: row.get("rpm")?,
            tpm: row.get::<_, Option<i64>>("tpm")?.map(unsigned),
            concurrent: row.get("concurrent")?,
            budget: text("budget")?.as_deref().map(parsed).transpose()?,
            budget_money: text("budget_money")?.as_deref().map(parsed).transpose()?,
            no_cloud: row.get("no_cloud")?,
            resume_answers: text("resume_answers")?.as_deref().map(parsed).transpose()?,
        },
        room: text("room")?.map(RoomId::from),
        created: unsigned(row.get("created")?),
        expires: seconds("expires")?,
        revoked: seconds("revoked")?,
        last_used: seconds("last_used")?,
    })
}

fn save_key(transaction: &Transaction<'_>, key: &KeyRecord) -> rusqlite::Result<()> {
    // Not OR REPLACE: that would delete another key with the same digest.
    let insert = "INSERT INTO keys VALUES (:id, :digest, :name, :prefix, :scopes, :models, :rpm,
            :tpm, :concurrent, :budget, :created, :expires, :revoked, :last_used, :room, :budget_money,
            :no_cloud, :resume_answers)
        ON CONFLICT (id) DO UPDATE SET digest = :digest, name = :name, prefix = :prefix,
            scopes = :scopes, models = :models, rpm = :rpm, tpm = :tpm,
            concurrent = :concurrent, budget = :budget, created = :created,
            expires = :expires, revoked = :revoked, last_used = :last_used,
            room = :room, budget_money = :budget_money, no_cloud = :no_cloud,
            resume_answers = :resume_answers";
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    let values = named_params! {
        ":id": key.id.as_str(),
        ":digest": key.digest.0,
        ":name": key.name,
        ":prefix": key.prefix,
        ":scopes": scopes.join("\n"),
        ":models": key.models.join("\n"),
        ":rpm": key.limits.rpm,
        ":tpm": key.limits.tpm.map(signed),
        ":concurrent": key.limits.concurrent,
        ":budget": key.limits.budget.as_ref().map(Budget::to_string),
        ":budget_money": key.limits.budget_money.as_ref().map(MoneyBudget::to_string),
        ":no_cloud": key.limits.no_cloud,
        ":resume_answers": key.limits.resume_answers.map(ResumeAnswers::as_str),
        ":created": signed(key.created),
        ":expires": key.expires.map(signed),
        ":revoked": key.revoked.map(signed),
        ":last_used": key.last_used.map(signed),
        ":room": key.room.as_ref().map(RoomId::as_str),
    };
    transaction.execute(insert, values).map(drop)
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').filter(|line| !line.is_empty())
}
