//! Takes over what a server has in its own file, each record and row once.

use std::{collections::HashSet, time::Duration};

use rand::RngExt;
use tokio_postgres::{Client, Transaction};

use super::{
    PostgresStore,
    columns::{text, value},
    failure::Failure,
    invitations, keys, page_sessions,
};
use crate::{
    SqliteStore, StoreError, WaitingRows,
    import::{ImportCounts, OwnRecords, Taken},
};

/// How long all records together may take.
const RECORDS: Duration = Duration::from_secs(60);

/// Rows that are taken in one transaction.
const BATCH: usize = 1_000;

impl PostgresStore {
    /// Takes over the keys, open invitations, page sessions, usage and the audit log of a server's own file. What is
    /// there already stays as it is; a dry run changes nothing. `now` is in seconds since 1970. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Clash`] when the database has a key's text under another id; then nothing is changed. Other
    /// errors when something cannot be read or written; then the next call goes on from there.
    pub fn import(
        &self,
        own: &SqliteStore,
        now: u64,
        is_dry: bool,
    ) -> Result<ImportCounts, StoreError> {
        let source = match own.import_source()? {
            Some(source) => source,
            None if is_dry => String::new(),
            None => {
                let source = format!("import-{:032x}", rand::rng().random::<u128>());
                own.name_import_source(&source)?;
                source
            }
        };
        let [keys, invitations, page_sessions] =
            self.import_records(own.own_records(now)?, is_dry)?;
        let (usage, audit) = (self.last_of(&source, "usage")?, self.last_of(&source, "audit")?);
        let [of_usage, of_audit] = own.count_rows(usage, audit)?;
        if !is_dry {
            self.import_usage(own, &source, usage)?;
            self.import_actions(own, &source, audit)?;
        }
        let taken = |(known, new): (u64, u64)| Taken { new, known };
        let (usage, audit) = (taken(of_usage), taken(of_audit));
        Ok(ImportCounts { keys, invitations, page_sessions, usage, audit })
    }

    /// The number of the last row that was taken of a source; -1 if none was.
    fn last_of(&self, source: &str, list: &'static str) -> Result<i64, StoreError> {
        let source = source.to_owned();
        self.read(async move |client| {
            let select = "SELECT last FROM sources WHERE source = $1 AND list = $2";
            let row = client.query_opt(select, &[&source, &list]).await?;
            row.map_or(Ok(-1), |row| value(&row, "last"))
        })
    }

    fn import_usage(&self, own: &SqliteStore, source: &str, last: i64) -> Result<(), StoreError> {
        let mut last = last;
        loop {
            let rows = own.usage_after(last, BATCH)?;
            let Some((number, _)) = rows.last() else { return Ok(()) };
            last = *number;
            self.take_usage(&WaitingRows { source: source.to_owned(), rows })?;
        }
    }

    fn import_actions(&self, own: &SqliteStore, source: &str, last: i64) -> Result<(), StoreError> {
        let mut last = last;
        loop {
            let rows = own.actions_after(last, BATCH)?;
            let Some((number, _)) = rows.last() else { return Ok(()) };
            last = *number;
            self.take_actions(&WaitingRows { source: source.to_owned(), rows })?;
        }
    }

    fn import_records(&self, own: OwnRecords, is_dry: bool) -> Result<[Taken; 3], StoreError> {
        let ids: Vec<(String, Vec<u8>)> =
            own.keys.iter().map(|key| (text(key.id.as_str()), key.digest.0.to_vec())).collect();
        let work = async move |client: &mut Client| {
            let transaction = client.transaction().await?;
            if let Some((key, other)) = clash(&transaction, &ids).await? {
                return Ok(Err((key, other)));
            }
            let taken = take(&transaction, &own).await?;
            if !is_dry {
                transaction.commit().await?;
            }
            Ok(Ok(taken))
        };
        let done =
            self.connections.run(RECORDS, work).map_err(|failure| failure.of(&self.shown))?;
        done.map_err(|(key, other)| StoreError::Clash { database: self.shown.clone(), key, other })
    }
}

/// The ids of a key of the file and of another key in the database that has the same text, if there are such keys.
async fn clash(
    transaction: &Transaction<'_>,
    own: &[(String, Vec<u8>)],
) -> Result<Option<(String, String)>, Failure> {
    let select = "SELECT own.id AS own, keys.id AS other FROM keys
        JOIN unnest($1::TEXT[], $2::BYTEA[]) AS own (id, digest) USING (digest) WHERE keys.id <> own.id LIMIT 1";
    let ids: Vec<&str> = own.iter().map(|(id, _)| id.as_str()).collect();
    let digests: Vec<&[u8]> = own.iter().map(|(_, digest)| digest.as_slice()).collect();
    let row = transaction.query_opt(select, &[&ids, &digests]).await?;
    row.map(|row| Ok((value(&row, "own")?, value(&row, "other")?))).transpose()
}

async fn take(transaction: &Transaction<'_>, own: &OwnRecords) -> Result<[Taken; 3], Failure> {
    let mut taken = [Taken::default(); 3];
    let known = known(transaction, "keys").await?;
    for key in &own.keys {
        if taken[0].note(known.contains(&text(key.id.as_str()))) {
            keys::save_key(transaction, key).await?;
        }
    }
    let known = self::known(transaction, "invitations").await?;
    for invitation in &own.invitations {
        if taken[1].note(known.contains(&text(&invitation.id))) {
            invitations::save(transaction, invitation, "TRUE").await?;
        }
    }
    let known = self::known(transaction, "page_sessions").await?;
    for session in &own.page_sessions {
        if taken[2].note(known.contains(&text(&session.id))) {
            page_sessions::save(transaction, session).await?;
        }
    }
    Ok(taken)
}

/// The ids of a table.
async fn known(transaction: &Transaction<'_>, table: &str) -> Result<HashSet<String>, Failure> {
    let rows = transaction.query(&format!("SELECT id FROM {table}"), &[]).await?;
    rows.iter().map(|row| value(row, "id")).collect()
}

impl Taken {
    /// Counts one. Returns whether it is new.
    fn note(&mut self, is_known: bool) -> bool {
        self.known += u64::from(is_known);
        self.new += u64::from(!is_known);
        !is_known
    }
}
