//! Changes by other servers. Each change of a key, an invitation, a session of the page or a room gets the next number
//! of its table. A change locks the row with this number until its commit, so the numbers are in the order of the
//! commits. A server that has seen all changes up to a number asks for those after it.
//!
//! A change is announced to all connections at once. Besides, each server looks at the numbers every second.

use tokio_postgres::{Row, Transaction};

use super::{PostgresStore, STATEMENT, columns::value, failure::Failure};
use crate::{Changes, StoreError};

/// A table that every server has a copy of in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedTable {
    /// Keys.
    Keys,
    /// Invitations.
    Invitations,
    /// Sessions of the page.
    PageSessions,
    /// Rooms.
    Rooms,
}

impl SharedTable {
    fn name(self) -> &'static str {
        match self {
            Self::Keys => "keys",
            Self::Invitations => "invitations",
            Self::PageSessions => "page_sessions",
            Self::Rooms => "rooms",
        }
    }
}

/// A value for each shared table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PerTable<T> {
    /// Of keys.
    pub keys: T,
    /// Of invitations.
    pub invitations: T,
    /// Of sessions of the page.
    pub page_sessions: T,
    /// Of rooms.
    pub rooms: T,
}

/// The number of the last change of each shared table.
pub type Revisions = PerTable<i64>;

impl PostgresStore {
    /// The number of the last change of each table.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn revisions(&self) -> Result<Revisions, StoreError> {
        let all = "SELECT name, revision FROM revisions";
        self.read(async move |client| {
            let mut revisions = Revisions::default();
            for row in client.query(all, &[]).await? {
                revisions.note(value(&row, "name")?, value(&row, "revision")?);
            }
            Ok(revisions)
        })
    }

    /// The changes of a table after this number, and the number of its last change. `None`: the whole table.
    pub(super) fn changes<T: Send + 'static>(
        &self,
        table: SharedTable,
        since: Option<i64>,
        record: fn(&Row) -> Result<T, Failure>,
    ) -> Result<(Changes<T>, i64), StoreError> {
        self.look(STATEMENT, async move |snapshot| changes(snapshot, table, since, record).await)
    }
}

impl Revisions {
    fn note(&mut self, table: &str, revision: i64) {
        match table {
            "keys" => self.keys = revision,
            "invitations" => self.invitations = revision,
            "page_sessions" => self.page_sessions = revision,
            "rooms" => self.rooms = revision,
            _ => {}
        }
    }
}

async fn changes<T>(
    snapshot: &Transaction<'_>,
    table: SharedTable,
    since: Option<i64>,
    record: fn(&Row) -> Result<T, Failure>,
) -> Result<(Changes<T>, i64), Failure> {
    let of_table = "SELECT revision, deleted FROM revisions WHERE name = $1";
    let row = snapshot.query_one(of_table, &[&table.name()]).await?;
    let (revision, deleted): (i64, i64) = (value(&row, "revision")?, value(&row, "deleted")?);
    // Records that were deleted since cannot be listed: then all are read. All are read, too, if the database's number
    // is smaller: then it was restored from a backup.
    let since = since.filter(|since| *since >= deleted && *since <= revision);
    let which = format!("SELECT * FROM {} WHERE changed > $1 ORDER BY created, id", table.name());
    let rows = snapshot.query(&which, &[&since.unwrap_or(i64::MIN)]).await?;
    let records = rows.iter().map(record).collect::<Result<_, _>>()?;
    Ok((Changes { whole: since.is_none(), records }, revision))
}
