//! Records that a server takes along from its own file into a database that several servers share.

use rusqlite::{Connection, Row};

use super::{SqliteStore, signed, unsent::rows, unsigned};
use crate::{
    Change, Fact, InvitationStore, KeyStore, PageSessionStore, StoreError, WorkspaceStore,
    import::{NumberedActions, NumberedUsage, OwnRecords},
};

/// The kind of the fact whose id is the name of this file as a source of rows.
const SOURCE: &str = "import";

const USAGE: &str = "SELECT rows.id AS number, rows.id >> 20 AS at, 'r-' || lower(hex(job)) AS job, key, model, served_model,
        NULLIF(provider, '') AS provider, api, COALESCE(outcome, 'answered') AS outcome, status, rows.prompt_tokens,
        rows.completion_tokens, flags & 1 AS estimated, queue_ms, first_byte_ms, total_ms,
        flags >> 1 & 1 AS streaming, flags >> 2 AS requeues, rows.cost, rows.resumes
    FROM usage_rows AS rows JOIN usage_days AS sums ON sums.id = rows.sums
    WHERE rows.id > ?1 ORDER BY rows.id LIMIT ?2";

const AUDIT: &str = "SELECT id AS number, at, who, what, target, outcome FROM audit WHERE id > ?1 ORDER BY id LIMIT ?2";

impl SqliteStore {
    /// The records to take along at this time, in seconds since 1970.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn own_records(&self, now: u64) -> Result<OwnRecords, StoreError> {
        let mut invitations = self.load_invitations()?;
        invitations.retain(|it| it.used.is_none() && it.revoked.is_none() && it.expires > now);
        let mut page_sessions = self.load_page_sessions()?;
        page_sessions.retain(|session| session.expires > now);
        Ok(OwnRecords { keys: self.load_keys()?, invitations, page_sessions })
    }

    /// At most `most` rows of usage after this number, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn usage_after(&self, number: i64, most: usize) -> Result<NumberedUsage, StoreError> {
        self.read(|connection| after(connection, USAGE, number, most, rows::usage))
    }

    /// At most `most` actions after this number, the oldest first.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn actions_after(&self, number: i64, most: usize) -> Result<NumberedActions, StoreError> {
        self.read(|connection| after(connection, AUDIT, number, most, rows::action))
    }

    /// How many rows of usage, and then of actions, there are up to these numbers, and how many after them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn count_rows(&self, usage: i64, audit: i64) -> Result<[(u64, u64); 2], StoreError> {
        let count = |connection: &Connection, table: &str, number: i64| {
            let select = format!(
                "SELECT COALESCE(SUM(id <= ?1), 0), COALESCE(SUM(id > ?1), 0) FROM {table}"
            );
            connection.query_row(&select, [number], |row| {
                Ok((unsigned(row.get(0)?), unsigned(row.get(1)?)))
            })
        };
        self.read(|connection| {
            Ok([count(connection, "usage_rows", usage)?, count(connection, "audit", audit)?])
        })
    }

    /// The name of this file as a source of rows; `None`: it has none yet.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn import_source(&self) -> Result<Option<String>, StoreError> {
        Ok(self.load_facts(SOURCE)?.into_iter().next().map(|fact| fact.id))
    }

    /// Gives this file a name as a source of rows.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn name_import_source(&self, name: &str) -> Result<(), StoreError> {
        let (kind, id, json) = (SOURCE.to_owned(), name.to_owned(), "{}".to_owned());
        self.change_facts(&[Change::Keep(Fact { kind, id, json })])
    }
}

fn after<T>(
    connection: &Connection,
    select: &str,
    number: i64,
    most: usize,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<(i64, T)>> {
    let mut query = connection.prepare_cached(select)?;
    let rows = query
        .query_map([number, signed(most as u64)], |row| Ok((row.get("number")?, read(row)?)))?;
    rows.collect()
}
