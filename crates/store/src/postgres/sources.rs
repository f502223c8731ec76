//! Takes rows that waited on a server's disk. For every run of a server, the database notes the last row that it has
//! taken, so that it takes each row once.

use tokio_postgres::Transaction;

use super::{PostgresStore, audit, columns::value, failure::Failure, pools, usage};
use crate::{Action, StoreError, UsageEntry, WaitingRows};

impl PostgresStore {
    /// Adds rows of usage that were not taken before.
    ///
    /// # Errors
    /// When they cannot be written; then none are added.
    pub fn take_usage(&self, waiting: &WaitingRows<UsageEntry>) -> Result<(), StoreError> {
        let waiting = waiting.clone();
        self.write(async move |transaction| {
            let run = waiting.source.clone();
            let entries = new_rows(transaction, "usage", waiting).await?;
            usage::write::add(transaction, &entries).await?;
            pools::taken(transaction, &run, &entries).await
        })
    }

    /// Adds actions that were not taken before.
    ///
    /// # Errors
    /// When they cannot be written; then none are added.
    pub fn take_actions(&self, waiting: &WaitingRows<Action>) -> Result<(), StoreError> {
        let waiting = waiting.clone();
        self.write(async move |transaction| {
            let actions = new_rows(transaction, "audit", waiting).await?;
            audit::add(transaction, &actions).await
        })
    }
}

/// The rows that were not taken before. They count as taken once this transaction is committed.
async fn new_rows<T>(
    transaction: &Transaction<'_>,
    list: &str,
    waiting: WaitingRows<T>,
) -> Result<Vec<T>, Failure> {
    let source = &waiting.source;
    let last = last(transaction, source, list).await?;
    let note = "UPDATE sources SET last = GREATEST(last, $3) WHERE source = $1 AND list = $2";
    transaction.execute(note, &[source, &list, &waiting.last().unwrap_or(last)]).await?;
    let new = waiting.rows.into_iter().filter(|(number, _)| *number > last);
    Ok(new.map(|(_, row)| row).collect())
}

/// The number of the last row that was taken of a source; -1 if none was. Locks the source until the commit.
async fn last(transaction: &Transaction<'_>, source: &str, list: &str) -> Result<i64, Failure> {
    let begin =
        "INSERT INTO sources (source, list, last) VALUES ($1, $2, -1) ON CONFLICT DO NOTHING";
    let is_new = transaction.execute(begin, &[&source, &list]).await? > 0;
    if is_new {
        // Rows that wait on a disk for longer than the ledger keeps any need not be recognised.
        let forget = "DELETE FROM sources WHERE began < now() - interval '400 days'";
        transaction.execute(forget, &[]).await?;
    }
    let select = "SELECT last FROM sources WHERE source = $1 AND list = $2 FOR UPDATE";
    value(&transaction.query_one(select, &[&source, &list]).await?, "last")
}
