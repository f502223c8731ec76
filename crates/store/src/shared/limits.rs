//! Limits that this server shares with others.

use std::sync::atomic::Ordering;

use base::{KeyId, Money};

use super::SharedStore;
use crate::{
    Change, Fact, StoreError, WorkspaceStore,
    pools::{Answers, Report},
    sqlite::UnsentSum,
};

/// The kind of the fact that says how many servers the database named last.
const SERVERS: &str = "servers";

impl SharedStore {
    /// Tells the database what this server holds and needs of limits. Called by one task.
    ///
    /// # Errors
    /// When the database is away.
    pub fn report(&self, reports: &[Report]) -> Result<Answers, StoreError> {
        let number = self.reports.fetch_add(1, Ordering::Relaxed) + 1;
        let answers = self.note(self.database.report(&self.source, number, reports))?;
        if self.servers.swap(answers.servers, Ordering::Relaxed) != answers.servers {
            self.note_servers(answers.servers)?;
        }
        Ok(answers)
    }

    /// Tells the database that this server has ended, after its last report.
    ///
    /// # Errors
    /// When the database is away: later it notices by itself that this server is silent.
    pub fn leave(&self) -> Result<(), StoreError> {
        self.note(self.database.leave(&self.source))
    }

    /// Has the database delete what is over of limits at this time, in milliseconds since 1970.
    ///
    /// # Errors
    /// When the database is away.
    pub fn forget_pools(&self, now_ms: u64) -> Result<(), StoreError> {
        self.note(self.database.forget_pools(now_ms))
    }

    /// Waits until other servers need what this server holds of keys' limits. Returns these keys.
    pub async fn recalled(&self) -> Vec<KeyId> {
        self.database.recalled().await
    }

    /// The number of servers that the database named last, even if that was before a restart; at least 1.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn known_servers(&self) -> Result<u64, StoreError> {
        let facts = self.own.load_facts(SERVERS)?;
        let of_database = facts.into_iter().find(|fact| fact.id == self.shown());
        Ok(of_database.and_then(|fact| fact.json.parse().ok()).unwrap_or(1).max(1))
    }

    /// The use of keys, by the day, by the rows that wait.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn unsent_sums(&self) -> Result<Vec<UnsentSum>, StoreError> {
        self.own.unsent_sums()
    }

    fn note_servers(&self, servers: u64) -> Result<(), StoreError> {
        let (kind, id, json) = (SERVERS.to_owned(), self.shown().to_owned(), servers.to_string());
        self.own.change_facts(&[Change::Keep(Fact { kind, id, json })])
    }
}

impl UnsentSum {
    /// The cost of these rows.
    pub fn money(&self) -> Money {
        Money(self.cost)
    }
}
