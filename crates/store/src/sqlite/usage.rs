//! The ledger's table.

use base::UsageBy;
use rusqlite::{Connection, Row, Transaction, named_params};

use super::{SqliteStore, signed, unsigned};
use crate::{
    StoreError,
    usage::{MAX_GROUPS, UsageAnswer, UsageEntry, UsageGroup, UsageQuery, UsageStore, UsageSums},
};

pub(super) const TABLE: &str = "CREATE TABLE usage (
        id INTEGER PRIMARY KEY,
        -- milliseconds since 1970
        at INTEGER NOT NULL,
        job TEXT NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        served_model TEXT,
        provider TEXT,
        api TEXT NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        estimated INTEGER NOT NULL,
        queue_ms INTEGER NOT NULL,
        first_byte_ms INTEGER,
        total_ms INTEGER NOT NULL,
        streaming INTEGER NOT NULL,
        requeues INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX usage_at ON usage (at);";

/// What is added up, in the order of [`sums`].
const SUMS: &str = "COUNT(*), COALESCE(SUM(prompt_tokens), 0),
    COALESCE(SUM(completion_tokens), 0), COALESCE(SUM(estimated), 0),
    COALESCE(SUM(outcome NOT IN ('answered', 'client_gone')), 0)";

/// Which rows are asked about.
const WHICH: &str = "FROM usage WHERE at >= :since AND at < :until
    AND (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
    AND (:provider IS NULL OR provider = :provider)";

impl UsageStore for SqliteStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        self.write(|transaction| add(transaction, entries))
    }

    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        self.read(|connection| answer(connection, query))
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        let delete = "DELETE FROM usage WHERE id IN
            (SELECT id FROM usage WHERE at < ?1 ORDER BY at LIMIT ?2)";
        let values = [signed(before_ms), signed(most as u64)];
        self.write(|transaction| transaction.execute(delete, values))
    }
}

fn add(transaction: &Transaction<'_>, entries: &[UsageEntry]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO usage (at, job, key, model, served_model, provider, api, outcome, status,
            prompt_tokens, completion_tokens, estimated, queue_ms, first_byte_ms, total_ms,
            streaming, requeues)
         VALUES (:at, :job, :key, :model, :served_model, :provider, :api, :outcome, :status,
            :prompt_tokens, :completion_tokens, :estimated, :queue_ms, :first_byte_ms, :total_ms,
            :streaming, :requeues)",
    )?;
    for entry in entries {
        insert.execute(named_params! {
            ":at": signed(entry.at_ms),
            ":job": entry.job.to_string(),
            ":key": entry.key.as_str(),
            ":model": entry.model.as_str(),
            ":served_model": entry.served_model.as_ref().map(|model| model.as_str()),
            ":provider": entry.provider.as_deref(),
            ":api": entry.endpoint.path(),
            ":outcome": entry.outcome,
            ":status": entry.status,
            ":prompt_tokens": entry.prompt_tokens.map(signed),
            ":completion_tokens": entry.completion_tokens.map(signed),
            ":estimated": entry.estimated,
            ":queue_ms": signed(entry.queue_ms),
            ":first_byte_ms": entry.first_byte_ms.map(signed),
            ":total_ms": signed(entry.total_ms),
            ":streaming": entry.streaming,
            ":requeues": entry.requeues,
        })?;
    }
    Ok(())
}

fn answer(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<UsageAnswer> {
    let mut groups = if query.by.is_empty() { Vec::new() } else { groups(connection, query)? };
    let truncated = groups.len() > MAX_GROUPS;
    groups.truncate(MAX_GROUPS);
    let totals = if truncated || query.by.is_empty() {
        totals(connection, query)?
    } else {
        groups.iter().fold(UsageSums::default(), |sums, group| sums.plus(&group.sums))
    };
    Ok(UsageAnswer { groups, truncated, totals })
}

fn groups(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<Vec<UsageGroup>> {
    let by: Vec<&str> = query.by.iter().map(|by| column(*by)).collect();
    let (by, width) = (by.join(", "), by.len());
    let most = MAX_GROUPS + 1;
    let sql = format!(
        "SELECT {by}, {SUMS} {WHICH} GROUP BY {by}
         ORDER BY COALESCE(SUM(prompt_tokens), 0) + COALESCE(SUM(completion_tokens), 0) DESC, {by}
         LIMIT {most}"
    );
    let mut groups = connection.prepare_cached(&sql)?;
    let group = |row: &Row<'_>| {
        let names = (0..width).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        Ok(UsageGroup { names, sums: sums(row, width)? })
    };
    select(&mut groups, query, group)
}

fn totals(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<UsageSums> {
    let mut totals = connection.prepare_cached(&format!("SELECT {SUMS} {WHICH}"))?;
    let totals = select(&mut totals, query, |row| sums(row, 0))?;
    Ok(totals.first().copied().unwrap_or_default())
}

fn select<T>(
    statement: &mut rusqlite::Statement<'_>,
    query: &UsageQuery,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let values = named_params! {
        ":since": signed(query.since_ms.unwrap_or(0)),
        ":until": signed(query.until_ms.unwrap_or(u64::MAX)),
        ":key": query.key,
        ":model": query.model,
        ":provider": query.provider,
    };
    statement.query_map(values, read)?.collect()
}

fn sums(row: &Row<'_>, from: usize) -> rusqlite::Result<UsageSums> {
    let sum = |at: usize| row.get::<_, i64>(from + at).map(unsigned);
    Ok(UsageSums {
        requests: sum(0)?,
        prompt_tokens: sum(1)?,
        completion_tokens: sum(2)?,
        estimated: sum(3)?,
        errors: sum(4)?,
    })
}

/// What tells rows apart. Days are cheap to tell apart as numbers, and written out by group.
fn column(by: UsageBy) -> &'static str {
    match by {
        UsageBy::Key => "key",
        UsageBy::Model => "model",
        UsageBy::Provider => "COALESCE(provider, '')",
        UsageBy::Api => "api",
        UsageBy::Day => "date(at / 86400000 * 86400, 'unixepoch')",
    }
}
