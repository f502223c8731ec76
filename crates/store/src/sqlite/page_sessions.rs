//! The table of the page's sessions.

use base::KeyId;
use rusqlite::{Row, Transaction, named_params};

use super::{SqliteStore, signed, unsigned};
use crate::{Changes, KeyDigest, PageSessionRecord, PageSessionStore, StoreError};

impl SqliteStore {
    /// Takes over changes from the store that this one is a copy of.
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    pub fn copy_page_sessions(
        &self,
        changes: &Changes<PageSessionRecord>,
    ) -> Result<(), StoreError> {
        self.copy("page_sessions", changes, save)
    }
}

impl PageSessionStore for SqliteStore {
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError> {
        self.rows("SELECT * FROM page_sessions ORDER BY created, id", [], record)
    }

    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError> {
        self.write(|transaction| save(transaction, session))
    }

    fn forget_page_session(&self, id: &str) -> Result<(), StoreError> {
        self.change("DELETE FROM page_sessions WHERE id = ?1", [id]).map(drop)
    }

    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError> {
        let used = used.iter().map(|(id, at)| (id.as_str(), *at));
        self.touch("UPDATE page_sessions SET last_used = ?2 WHERE id = ?1", used)
    }
}

fn save(transaction: &Transaction<'_>, session: &PageSessionRecord) -> rusqlite::Result<()> {
    let insert = "INSERT INTO page_sessions VALUES (:id, :digest, :key, :holder, :created, :expires, :last_used,
            :browser)
        ON CONFLICT (id) DO UPDATE SET digest = :digest, key = :key, holder = :holder, created = :created,
            expires = :expires, last_used = :last_used, browser = :browser";
    let values = named_params! {
        ":id": session.id,
        ":digest": session.digest.0,
        ":key": session.key.as_ref().map(KeyId::as_str),
        ":holder": session.holder.0,
        ":created": signed(session.created),
        ":expires": signed(session.expires),
        ":last_used": session.last_used.map(signed),
        ":browser": session.browser,
    };
    transaction.execute(insert, values).map(drop)
}

fn record(row: &Row<'_>) -> rusqlite::Result<PageSessionRecord> {
    Ok(PageSessionRecord {
        id: row.get("id")?,
        digest: KeyDigest(row.get("digest")?),
        key: row.get::<_, Option<String>>("key")?.map(KeyId::from),
        holder: KeyDigest(row.get("holder")?),
        created: unsigned(row.get("created")?),
        expires: unsigned(row.get("expires")?),
        last_used: row.get::<_, Option<i64>>("last_used")?.map(unsigned),
        browser: row.get("browser")?,
    })
}
