//! Rows of the ledger and of the audit log that wait for the database that several servers share.
//!
//! - `rows`: their tables, and one row

pub(super) mod rows;

use base::KeyId;
use rusqlite::{Connection, Row, ToSql, Transaction, params_from_iter};

use super::{SqliteStore, signed, unsigned};
use crate::{Action, StoreError, UsageEntry, WaitingRows};

/// The use of a key in a day, by the rows that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsentSum {
    /// The key.
    pub key: KeyId,
    /// The begin of the day, in milliseconds since 1970.
    pub day_ms: u64,
    /// Tokens of prompts and answers.
    pub tokens: u64,
    /// Their cost, in millionths.
    pub cost: u64,
}

/// One of the two lists of rows that wait: how its table is written and read.
struct List<T> {
    table: &'static str,
    insert: &'static str,
    values: fn(&T) -> Vec<Box<dyn ToSql + '_>>,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
}

const USAGE: List<UsageEntry> = List {
    table: "unsent_usage",
    insert: rows::INSERT_USAGE,
    values: rows::of_usage,
    read: rows::usage,
};

const ACTIONS: List<Action> = List {
    table: "unsent_audit",
    insert: rows::INSERT_ACTION,
    values: rows::of_action,
    read: rows::action,
};

impl SqliteStore {
    /// Adds rows of usage to those that wait, all or none.
    ///
    /// # Errors
    /// [`StoreError::Full`] when more than `most` would wait, and when they cannot be written.
    pub fn queue_usage(
        &self,
        source: &str,
        entries: &[UsageEntry],
        most: usize,
    ) -> Result<(), StoreError> {
        self.queue(&USAGE, source, entries, most)
    }

    /// At most `most` of the rows of usage that wait.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn waiting_usage(&self, most: usize) -> Result<WaitingRows<UsageEntry>, StoreError> {
        self.read(|connection| waiting(connection, &USAGE, most))
    }

    /// The use of keys, by the day, by the rows that wait.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn unsent_sums(&self) -> Result<Vec<UnsentSum>, StoreError> {
        let select = "SELECT key, at / 86400000 * 86400000 AS day,
                TOTAL(COALESCE(prompt_tokens, 0) + COALESCE(completion_tokens, 0)) AS tokens, TOTAL(cost) AS cost
            FROM unsent_usage GROUP BY key, day";
        self.read(|connection| {
            let mut query = connection.prepare(select)?;
            let sums = query.query_map([], |row| {
                Ok(UnsentSum {
                    key: KeyId::from(row.get::<_, String>("key")?),
                    day_ms: unsigned(row.get("day")?),
                    // A floating-point sum does not overflow, and is exact up to 2^53.
                    tokens: row.get::<_, f64>("tokens")? as u64,
                    cost: row.get::<_, f64>("cost")? as u64,
                })
            })?;
            sums.collect()
        })
    }

    /// Deletes the rows of usage up to this number, which were sent. Returns how many still wait.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn sent_usage(&self, last: i64) -> Result<u64, StoreError> {
        self.sent(&USAGE, last)
    }

    /// Adds actions to those that wait.
    ///
    /// # Errors
    /// [`StoreError::Full`] when more than `most` would wait, and when they cannot be written.
    pub fn queue_actions(
        &self,
        source: &str,
        actions: &[Action],
        most: usize,
    ) -> Result<(), StoreError> {
        self.queue(&ACTIONS, source, actions, most)
    }

    /// At most `most` of the actions that wait.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn waiting_actions(&self, most: usize) -> Result<WaitingRows<Action>, StoreError> {
        self.read(|connection| waiting(connection, &ACTIONS, most))
    }

    /// Deletes the actions up to this number, which were sent. Returns how many still wait.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn sent_actions(&self, last: i64) -> Result<u64, StoreError> {
        self.sent(&ACTIONS, last)
    }

    fn queue<T>(
        &self,
        list: &List<T>,
        source: &str,
        rows: &[T],
        most: usize,
    ) -> Result<(), StoreError> {
        let is_room = self.write(|transaction| {
            let is_room = waits(transaction, list)? + rows.len() as u64 <= most as u64;
            if is_room {
                rows.iter().try_for_each(|row| add(transaction, list, source, row))?;
            }
            Ok(is_room)
        })?;
        if is_room { Ok(()) } else { Err(StoreError::Full { most }) }
    }

    fn sent<T>(&self, list: &List<T>, last: i64) -> Result<u64, StoreError> {
        let delete = format!("DELETE FROM {} WHERE number <= ?1", list.table);
        self.write(|transaction| {
            transaction.execute(&delete, [last])?;
            waits(transaction, list)
        })
    }
}

/// How many rows wait. Rows are deleted from the oldest on, so their numbers have no gaps.
fn waits<T>(connection: &Connection, list: &List<T>) -> rusqlite::Result<u64> {
    let count = format!("SELECT COALESCE(MAX(number) - MIN(number) + 1, 0) FROM {}", list.table);
    let waiting: i64 = connection.query_row(&count, [], |row| row.get(0))?;
    Ok(waiting.unsigned_abs())
}

fn add<T>(
    transaction: &Transaction<'_>,
    list: &List<T>,
    source: &str,
    row: &T,
) -> rusqlite::Result<()> {
    let mut values: Vec<Box<dyn ToSql + '_>> = vec![Box::new(source)];
    values.extend((list.values)(row));
    transaction.prepare_cached(list.insert)?.execute(params_from_iter(values)).map(drop)
}

/// The oldest rows, up to the first of another source.
fn waiting<T>(
    connection: &Connection,
    list: &List<T>,
    most: usize,
) -> rusqlite::Result<WaitingRows<T>> {
    let select = format!("SELECT * FROM {} ORDER BY number LIMIT ?1", list.table);
    let mut query = connection.prepare_cached(&select)?;
    let mut found = query.query([signed(most as u64)])?;
    let mut waiting = WaitingRows { source: String::new(), rows: Vec::new() };
    while let Some(row) = found.next()? {
        let source: String = row.get("source")?;
        if waiting.rows.is_empty() {
            waiting.source = source;
        } else if waiting.source != source {
            break;
        }
        waiting.rows.push((row.get("number")?, (list.read)(row)?));
    }
    Ok(waiting)
}
