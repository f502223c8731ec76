//! The database that several servers share: PostgreSQL.
//!
//! The traits are synchronous, and their callers block. A thread of its own has the connections; a call hands it
//! a piece of work and waits for the answer, with a deadline. So every thread can call, and no caller needs a runtime.
//!
//! - `address`: where the database is
//! - `connections`: the thread and its connections; `connecting`, `tls`: how a connection is made; `bell`: what other
//!   servers announce
//! - `examination`: findings about the database without a running server
//! - `failure`: what an error means
//! - `schema`: makes the tables, once however many servers start; `tables`: the SQL text that makes them
//! - `changes`: what other servers have changed
//! - `keys`, `invitations`, `page_sessions`, `usage`, `audit`, `rooms`, `responses`: their tables
//! - `pools`: limits that servers share
//! - `sources`: rows that waited on a server's disk; `import`: what a server takes along from its own file
//! - `columns`: values of rows; `system`: differences between systems

mod address;
mod audit;
mod bell;
mod changes;
mod columns;
mod connecting;
mod connections;
mod examination;
mod failure;
mod import;
mod invitations;
mod keys;
mod page_sessions;
mod pools;
mod responses;
mod rooms;
mod schema;
mod sources;
mod system;
mod tables;
mod tls;
mod usage;

use std::time::Duration;

use base::{KeyId, Secret};
use tokio_postgres::{Client, Row, Transaction, types::ToSql};

use self::{
    address::Address,
    columns::{signed, text},
    connections::Connections,
    failure::Failure,
};
pub use self::{
    changes::{PerTable, Revisions, SharedTable},
    examination::{examine, waiting_rows},
};
use crate::StoreError;

/// How long a statement may take, with the wait for a connection.
const STATEMENT: Duration = Duration::from_secs(5);

/// How long a query of the ledger may take: it may be about a year.
const QUESTION: Duration = Duration::from_secs(30);

/// A value of a statement.
type Value = Box<dyn ToSql + Send + Sync>;

/// A store in a PostgreSQL database, which other servers may use, too.
pub struct PostgresStore {
    connections: Connections,
    /// Where it is, without secrets.
    shown: String,
}

impl PostgresStore {
    /// A store in the database of this URL. It is connected to when it is first used.
    ///
    /// # Errors
    /// [`StoreError::Address`] when this is no URL of a database, [`StoreError::Unavailable`] when no thread can be
    /// started for it.
    pub fn new(url: &Secret) -> Result<Self, StoreError> {
        let Address { config, shown } = Address::parse(url)?;
        let failed = |failure: Failure| failure.of(&shown);
        let connections = Connections::start(config).map_err(failed)?;
        Ok(Self { connections, shown })
    }

    /// Where the database is, without its secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Why the database could not be used at the last try; `None` while all is well. Does not wait.
    pub fn problem(&self) -> Option<String> {
        let problem = self.connections.problem()?;
        Some(format!("the database {} cannot be used: {problem}", self.shown))
    }

    /// Waits until another server changes something, or for this long.
    pub fn wait_for_change(&self, most: Duration) {
        self.connections.bell().wait(most);
    }

    /// Waits until other servers need what this server holds of keys' limits without using it. Returns these keys.
    pub async fn recalled(&self) -> Vec<KeyId> {
        self.connections.bell().recalled().await
    }

    /// Ends a wait for a change.
    pub fn wake(&self) {
        self.connections.bell().ring();
    }

    fn read<T: Send + 'static>(
        &self,
        read: impl AsyncFnOnce(&Client) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = async move |client: &mut Client| read(client).await;
        self.connections.run(STATEMENT, work).map_err(|failure| failure.of(&self.shown))
    }

    /// The records of the rows that a query finds.
    fn rows<T: Send + 'static>(
        &self,
        query: &'static str,
        which: Vec<Value>,
        record: fn(&Row) -> Result<T, Failure>,
    ) -> Result<Vec<T>, StoreError> {
        self.read(async move |client| {
            client.query(query, &borrowed(&which)).await?.iter().map(record).collect()
        })
    }

    /// The record of the row that a query finds, if there is one.
    fn row<T: Send + 'static>(
        &self,
        query: &'static str,
        which: Vec<Value>,
        record: fn(&Row) -> Result<T, Failure>,
    ) -> Result<Option<T>, StoreError> {
        self.read(async move |client| {
            client.query_opt(query, &borrowed(&which)).await?.as_ref().map(record).transpose()
        })
    }

    /// Carries out a statement. Returns how many rows it has changed.
    fn change(&self, statement: &'static str, values: Vec<Value>) -> Result<u64, StoreError> {
        self.write(async move |transaction| {
            Ok(transaction.execute(statement, &borrowed(&values)).await?)
        })
    }

    /// Carries out a statement with ids and the times when they were last used. The statement must keep the later
    /// time, since several servers report one.
    fn touch<'a>(
        &self,
        statement: &'static str,
        used: impl Iterator<Item = (&'a str, u64)>,
    ) -> Result<(), StoreError> {
        let (ids, at): (Vec<String>, Vec<i64>) =
            used.map(|(id, at)| (text(id), signed(at))).unzip();
        self.change(statement, vec![Box::new(ids), Box::new(at)]).map(drop)
    }

    /// Writes in one transaction.
    fn write<T: Send + 'static>(
        &self,
        write: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = async move |client: &mut Client| {
            let transaction = client.transaction().await?;
            let written = write(&transaction).await?;
            transaction.commit().await?;
            Ok(written)
        };
        self.connections.run(STATEMENT, work).map_err(|failure| failure.of(&self.shown))
    }

    /// Reads a snapshot of one moment, in one transaction.
    fn look<T: Send + 'static>(
        &self,
        within: Duration,
        look: impl AsyncFnOnce(&Transaction<'_>) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, StoreError> {
        let work = async move |client: &mut Client| {
            let snapshot = tokio_postgres::IsolationLevel::RepeatableRead;
            let looking = client.build_transaction().read_only(true).isolation_level(snapshot);
            look(&looking.start().await?).await
        };
        self.connections.run(within, work).map_err(|failure| failure.of(&self.shown))
    }
}

/// The values as the database's client takes them.
fn borrowed(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
}
