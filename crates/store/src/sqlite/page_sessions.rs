//! The page's sessions: their rows.

use base::KeyId;
use rusqlite::{Connection, Row, Transaction, named_params, params};

use super::{SqliteStore, signed, unsigned};
use crate::{Changes, KeyDigest, PageSessionRecord, PageSessionStore, StoreError};

impl SqliteStore {
    /// Puts changes of a store of which this is a copy into it.
    ///
    /// # Errors
    /// When they cannot be written; then nothing is changed.
    pub fn copy_page_sessions(
        &self,
        changes: &Changes<PageSessionRecord>,
    ) -> Result<(), StoreError> {
        self.write(|transaction| {
            if changes.whole {
                transaction.execute("DELETE FROM page_sessions", [])?;
            }
            changes.records.iter().try_for_each(|session| save(transaction, session))
        })
    }
}

impl PageSessionStore for SqliteStore {
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError> {
        self.read(load)
    }

    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError> {
        self.write(|transaction| save(transaction, session))
    }

    fn forget_page_session(&self, id: &str) -> Result<(), StoreError> {
        let delete = "DELETE FROM page_sessions WHERE id = ?1";
        self.write(|transaction| transaction.execute(delete, [id]).map(drop))
    }

    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let update = "UPDATE page_sessions SET last_used = ?2 WHERE id = ?1";
            let mut update = transaction.prepare(update)?;
            for (id, at) in used {
                update.execute(params![id, signed(*at)])?;
            }
            Ok(())
        })
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

fn load(connection: &Connection) -> rusqlite::Result<Vec<PageSessionRecord>> {
    let mut query = connection.prepare("SELECT * FROM page_sessions ORDER BY created, id")?;
    let rows = query.query_map([], record)?;
    rows.collect()
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
