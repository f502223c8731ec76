//! Makes the tables, in a schema of their own. The first connection of any server brings them up to date; other
//! servers that connect meanwhile wait for that.

use tokio_postgres::{Client, Transaction};

use super::{failure::Failure, tables};

/// The steps that led to this version's tables. A released step never changes: databases have passed it already.
const STEPS: &[&[&str]] = &[
    &[
        tables::REVISIONS,
        tables::KEYS,
        tables::INVITATIONS,
        tables::PAGE_SESSIONS,
        tables::USAGE,
        tables::AUDIT,
        tables::ROOMS,
        tables::REACHED,
        tables::SOURCES,
    ],
    &[tables::USAGE_KEYS, tables::POOLS],
    &[tables::ROOM_HOMES],
    &[tables::RESPONSES],
    &[tables::RESUMES],
];

/// The version of the tables after all steps.
pub(super) const KNOWN: i32 = STEPS.len() as i32;

/// The advisory lock that is held while tables are made. The number is arbitrary; no other program should lock it.
const LOCK: i64 = 0x7761_7272_656e;

/// Makes the tables that this version needs, unless they are there.
pub(super) async fn bring_up_to_date(client: &mut Client) -> Result<(), Failure> {
    if version(client).await? == Some(KNOWN) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    begin(&transaction).await?;
    let found: i32 =
        transaction.query_one("SELECT version FROM warren.tables", &[]).await?.try_get(0)?;
    if found > KNOWN {
        return Err(Failure::Newer { found, known: KNOWN });
    }
    pass(&transaction, found).await?;
    Ok(transaction.commit().await?)
}

/// The version of the tables, if there are any.
pub(super) async fn version(client: &Client) -> Result<Option<i32>, Failure> {
    let are_there = "SELECT to_regclass('warren.tables') IS NOT NULL";
    if !client.query_one(are_there, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let found = client.query_opt("SELECT version FROM warren.tables", &[]).await?;
    Ok(found.map(|row| row.try_get(0)).transpose()?)
}

/// Makes an empty schema, unless it is there. A user who may not make a schema can use one that was made before.
async fn begin(transaction: &Transaction<'_>) -> Result<(), Failure> {
    let is_there = "SELECT to_regnamespace('warren') IS NOT NULL";
    if !transaction.query_one(is_there, &[]).await?.try_get::<_, bool>(0)? {
        transaction.batch_execute("CREATE SCHEMA warren").await?;
    }
    let tables = "CREATE TABLE IF NOT EXISTS warren.tables (version INTEGER NOT NULL);
        INSERT INTO warren.tables SELECT 0 WHERE NOT EXISTS (SELECT FROM warren.tables)";
    Ok(transaction.batch_execute(tables).await?)
}

/// Takes the steps after the version that was found.
async fn pass(transaction: &Transaction<'_>, found: i32) -> Result<(), Failure> {
    transaction.batch_execute("SET LOCAL search_path TO warren").await?;
    let passed = usize::try_from(found).unwrap_or_default();
    for statements in STEPS.iter().skip(passed).copied().flatten() {
        transaction.batch_execute(statements).await?;
    }
    transaction.execute("UPDATE tables SET version = $1", &[&KNOWN]).await?;
    Ok(())
}
