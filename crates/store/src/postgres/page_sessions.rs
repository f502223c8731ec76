//! The table of the page's sessions.

use base::KeyId;
use tokio_postgres::{Row, Transaction};

use super::{
    PostgresStore, SharedTable,
    columns::{digest, maybe, signed, text, unsigned, value},
    failure::Failure,
};
use crate::{Changes, PageSessionRecord, PageSessionStore, StoreError};

impl PostgresStore {
    /// The sessions that were changed after this number, and the number of the last change. `None`: all.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn changed_page_sessions(
        &self,
        since: Option<i64>,
    ) -> Result<(Changes<PageSessionRecord>, i64), StoreError> {
        self.changes(SharedTable::PageSessions, since, record)
    }
}

impl PageSessionStore for PostgresStore {
    fn load_page_sessions(&self) -> Result<Vec<PageSessionRecord>, StoreError> {
        self.changed_page_sessions(None).map(|(all, _)| all.records)
    }

    fn save_page_session(&self, session: &PageSessionRecord) -> Result<(), StoreError> {
        let session = session.clone();
        self.write(async move |transaction| save(transaction, &session).await)
    }

    fn forget_page_session(&self, id: &str) -> Result<(), StoreError> {
        self.change("DELETE FROM page_sessions WHERE id = $1", vec![Box::new(text(id))]).map(drop)
    }

    fn touch_page_sessions(&self, used: &[(String, u64)]) -> Result<(), StoreError> {
        let update = "UPDATE page_sessions SET last_used = GREATEST(last_used, used.at)
            FROM (SELECT * FROM unnest($1::TEXT[], $2::BIGINT[]) AS used (id, at) ORDER BY id) AS used
            WHERE page_sessions.id = used.id";
        self.touch(update, used.iter().map(|(id, at)| (id.as_str(), *at)))
    }
}

/// Stores a session, or replaces the one with its id.
pub(super) async fn save(
    transaction: &Transaction<'_>,
    session: &PageSessionRecord,
) -> Result<(), Failure> {
    let insert = "INSERT INTO page_sessions VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)
        ON CONFLICT (id) DO UPDATE SET digest = $2, key = $3, holder = $4, created = $5, expires = $6,
            last_used = $7, browser = $8";
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 8] = [
        &text(&session.id),
        &session.digest.0.as_slice(),
        &session.key.as_ref().map(|key| text(key.as_str())),
        &session.holder.0.as_slice(),
        &signed(session.created),
        &signed(session.expires),
        &session.last_used.map(signed),
        &text(&session.browser),
    ];
    transaction.execute(insert, &values).await?;
    Ok(())
}

fn record(row: &Row) -> Result<PageSessionRecord, Failure> {
    Ok(PageSessionRecord {
        id: value(row, "id")?,
        digest: digest(row, "digest")?,
        key: value::<Option<String>>(row, "key")?.map(KeyId::from),
        holder: digest(row, "holder")?,
        created: unsigned(row, "created")?,
        expires: unsigned(row, "expires")?,
        last_used: maybe(row, "last_used")?,
        browser: value(row, "browser")?,
    })
}
