//! The ledger's tables: the rows, and their sums by the day.
//!
//! - `write`: adding and deleting rows
//! - `read`: queries

mod read;
pub(super) mod write;

use super::{PostgresStore, QUESTION, columns::signed};
use crate::{
    StoreError,
    usage::{UsageAnswer, UsageEntry, UsageQuery, UsageStore},
};

/// Names are compared byte by byte, whatever the language of the database.
pub(super) const TABLES: &str = r#"CREATE TABLE usage (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        -- milliseconds since 1970
        at BIGINT NOT NULL,
        job TEXT NOT NULL,
        key TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        served_model TEXT,
        provider TEXT COLLATE "C",
        api TEXT COLLATE "C" NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER,
        prompt_tokens BIGINT,
        completion_tokens BIGINT,
        estimated BOOLEAN NOT NULL,
        queue_ms BIGINT NOT NULL,
        first_byte_ms BIGINT,
        total_ms BIGINT NOT NULL,
        streaming BOOLEAN NOT NULL,
        requeues BIGINT NOT NULL,
        -- millionths of the servers' currency
        cost BIGINT
    );
    CREATE INDEX usage_at ON usage (at);
    CREATE TABLE usage_days (
        -- days since 1970
        day BIGINT NOT NULL,
        key TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        -- empty: not known
        provider TEXT COLLATE "C" NOT NULL,
        api TEXT COLLATE "C" NOT NULL,
        requests BIGINT NOT NULL,
        prompt_tokens BIGINT NOT NULL,
        completion_tokens BIGINT NOT NULL,
        estimated BIGINT NOT NULL,
        errors BIGINT NOT NULL,
        cost BIGINT NOT NULL,
        PRIMARY KEY (day, key, model, provider, api)
    );"#;

impl UsageStore for PostgresStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        let entries = entries.to_vec();
        self.write(async move |transaction| write::add(transaction, &entries).await)
    }

    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        let query = query.clone();
        self.look(QUESTION, async move |snapshot| read::answer(snapshot, &query).await)
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        let (before, most) = (signed(before_ms), signed(most as u64));
        self.write(async move |transaction| write::forget(transaction, before, most).await)
    }
}
