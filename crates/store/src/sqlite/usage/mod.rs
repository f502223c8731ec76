//! The ledger's table.

use std::collections::HashMap;

use base::UsageBy;
use rusqlite::{Connection, Row, Transaction, named_params, params};

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

/// The sums of each whole day, so that a question about a year need not read every row of it.
///
/// They change in the transaction that adds or forgets rows, once for all rows of a batch.
pub(super) const DAYS: &str = "CREATE TABLE usage_days (
        -- days since 1970
        day INTEGER NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        -- empty: not known
        provider TEXT NOT NULL,
        api TEXT NOT NULL,
        requests INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        PRIMARY KEY (day, key, model, provider, api)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO usage_days
        SELECT at / 86400000, key, model, COALESCE(provider, ''), api, COUNT(*),
            COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), SUM(estimated),
            SUM(outcome NOT IN ('answered', 'client_gone'))
        FROM usage GROUP BY 1, 2, 3, 4, 5;";

/// A day, in milliseconds.
const DAY: i64 = 86_400_000;

/// What is asked about: the sums of whole days, and the rows before and after those.
fn asked() -> String {
    let rows = "SELECT at / 86400000, key, model, COALESCE(provider, ''), api, 1,
        COALESCE(prompt_tokens, 0), COALESCE(completion_tokens, 0), estimated,
        outcome NOT IN ('answered', 'client_gone') FROM usage";
    format!(
        "FROM (SELECT * FROM usage_days WHERE day >= :days_from AND day < :days_to
            UNION ALL {rows} WHERE at >= :before_from AND at < :before_to
            UNION ALL {rows} WHERE at >= :after_from AND at < :after_to)
         WHERE (:key IS NULL OR key = :key) AND (:model IS NULL OR model = :model)
            AND (:provider IS NULL OR provider = :provider)"
    )
}

/// What is added up, in the order of [`sums`].
const SUMS: &str = "COALESCE(SUM(requests), 0), COALESCE(SUM(prompt_tokens), 0),
    COALESCE(SUM(completion_tokens), 0), COALESCE(SUM(estimated), 0), COALESCE(SUM(errors), 0)";

impl UsageStore for SqliteStore {
    fn add_usage(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        self.write(|transaction| add(transaction, entries))
    }

    fn usage(&self, query: &UsageQuery) -> Result<UsageAnswer, StoreError> {
        self.read(|connection| answer(connection, query))
    }

    fn forget_usage(&self, before_ms: u64, most: usize) -> Result<usize, StoreError> {
        let (before, most) = (signed(before_ms), signed(most as u64));
        self.write(|transaction| forget(transaction, before, most))
    }
}

fn add(transaction: &Transaction<'_>, entries: &[UsageEntry]) -> rusqlite::Result<()> {
    insert(transaction, entries)?;
    add_to_days(transaction, entries)
}

fn forget(transaction: &Transaction<'_>, before: i64, most: i64) -> rusqlite::Result<usize> {
    let which = "id IN (SELECT id FROM usage WHERE at < ?1 ORDER BY at, id LIMIT ?2)";
    let less = format!(
        "INSERT INTO usage_days
            SELECT at / 86400000, key, model, COALESCE(provider, ''), api, - COUNT(*),
                - COALESCE(SUM(prompt_tokens), 0), - COALESCE(SUM(completion_tokens), 0),
                - SUM(estimated), - SUM(outcome NOT IN ('answered', 'client_gone'))
            FROM usage WHERE {which} GROUP BY 1, 2, 3, 4, 5 {TO_DAY}"
    );
    transaction.prepare_cached(&less)?.execute([before, most])?;
    let empty = "DELETE FROM usage_days WHERE day <= ?1 AND requests = 0";
    transaction.execute(empty, [before / DAY])?;
    transaction.execute(&format!("DELETE FROM usage WHERE {which}"), [before, most])
}

/// What the sums of a day that are there already become.
const TO_DAY: &str = "ON CONFLICT DO UPDATE SET requests = requests + excluded.requests,
    prompt_tokens = prompt_tokens + excluded.prompt_tokens,
    completion_tokens = completion_tokens + excluded.completion_tokens,
    estimated = estimated + excluded.estimated, errors = errors + excluded.errors";

/// What sums of a day are told apart by: day, key, model, provider and path.
type OfDay<'a> = (i64, &'a str, &'a str, &'a str, &'static str);

/// Adds rows to the sums of their days. Summed up here: the database would have to read and sort
/// them, which takes as long as to write them.
fn add_to_days(transaction: &Transaction<'_>, entries: &[UsageEntry]) -> rusqlite::Result<()> {
    let mut days: HashMap<OfDay<'_>, UsageSums> = HashMap::new();
    for entry in entries {
        let sums = days.entry(of_day(entry)).or_default();
        *sums = sums.plus(&UsageSums::of(entry));
    }
    let add = format!("INSERT INTO usage_days VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10) {TO_DAY}");
    let mut add = transaction.prepare_cached(&add)?;
    for ((day, key, model, provider, api), sums) in days {
        add.execute(params![
            day,
            key,
            model,
            provider,
            api,
            signed(sums.requests),
            signed(sums.prompt_tokens),
            signed(sums.completion_tokens),
            signed(sums.estimated),
            signed(sums.errors),
        ])?;
    }
    Ok(())
}

fn of_day(entry: &UsageEntry) -> OfDay<'_> {
    let provider = entry.provider.as_deref().unwrap_or("");
    let day = signed(entry.at_ms) / DAY;
    (day, entry.key.as_str(), entry.model.as_str(), provider, entry.endpoint.path())
}

fn insert(transaction: &Transaction<'_>, entries: &[UsageEntry]) -> rusqlite::Result<()> {
    // By number: names would be looked up anew for each row.
    let mut insert = transaction.prepare_cached(
        "INSERT INTO usage (at, job, key, model, served_model, provider, api, outcome, status,
            prompt_tokens, completion_tokens, estimated, queue_ms, first_byte_ms, total_ms,
            streaming, requeues)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)",
    )?;
    for entry in entries {
        insert.execute(params![
            signed(entry.at_ms),
            entry.job.to_string(),
            entry.key.as_str(),
            entry.model.as_str(),
            entry.served_model.as_ref().map(|model| model.as_str()),
            entry.provider.as_deref(),
            entry.endpoint.path(),
            entry.outcome,
            entry.status,
            entry.prompt_tokens.map(signed),
            entry.completion_tokens.map(signed),
            entry.estimated,
            signed(entry.queue_ms),
            entry.first_byte_ms.map(signed),
            signed(entry.total_ms),
            entry.streaming,
            entry.requeues,
        ])?;
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
        "SELECT {by}, {SUMS} {asked} GROUP BY {by}
         ORDER BY SUM(prompt_tokens) + SUM(completion_tokens) DESC, {by} LIMIT {most}",
        asked = asked()
    );
    let mut groups = connection.prepare_cached(&sql)?;
    let group = |row: &Row<'_>| {
        let names = (0..width).map(|at| row.get(at)).collect::<Result<_, _>>()?;
        Ok(UsageGroup { names, sums: sums(row, width)? })
    };
    select(&mut groups, query, group)
}

fn totals(connection: &Connection, query: &UsageQuery) -> rusqlite::Result<UsageSums> {
    let mut totals = connection.prepare_cached(&format!("SELECT {SUMS} {}", asked()))?;
    let totals = select(&mut totals, query, |row| sums(row, 0))?;
    Ok(totals.first().copied().unwrap_or_default())
}

fn select<T>(
    statement: &mut rusqlite::Statement<'_>,
    query: &UsageQuery,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let span = Span::of(query);
    let values = named_params! {
        ":before_from": span.before.0,
        ":before_to": span.before.1,
        ":days_from": span.days.0,
        ":days_to": span.days.1,
        ":after_from": span.after.0,
        ":after_to": span.after.1,
        ":key": query.key,
        ":model": query.model,
        ":provider": query.provider,
    };
    statement.query_map(values, read)?.collect()
}

/// The time that is asked about: whole days, and what is before and after them. Each from the one
/// on, up to but without the other.
struct Span {
    /// In milliseconds since 1970.
    before: (i64, i64),
    /// In days since 1970.
    days: (i64, i64),
    /// In milliseconds since 1970.
    after: (i64, i64),
}

impl Span {
    fn of(query: &UsageQuery) -> Self {
        let since = signed(query.since_ms.unwrap_or(0));
        let until = signed(query.until_ms.unwrap_or(u64::MAX));
        let first = since / DAY + i64::from(since % DAY > 0);
        let end = first.max(until / DAY);
        Self {
            before: (since, until.min(first.saturating_mul(DAY))),
            days: (first, end),
            after: (end.saturating_mul(DAY), until),
        }
    }
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
        UsageBy::Provider => "provider",
        UsageBy::Api => "api",
        UsageBy::Day => "date(day * 86400, 'unixepoch')",
    }
}
