//! Findings about the database when it is looked at without a running server, by `warren doctor`.

use std::{
    future::poll_fn,
    path::Path,
    time::{Duration, SystemTime},
};

use base::{Secret, error::chain};
use rusqlite::{Connection as File, OpenFlags};
use tokio::{runtime::Builder, sync::mpsc, task::JoinHandle, time::timeout};
use tokio_postgres::{AsyncMessage, Client, Config};

use super::{address::Address, columns::value, failure::Failure, schema, tls::Tls};
use crate::{Examination, StoreError};

/// How long each step may take.
const PATIENCE: Duration = Duration::from_secs(4);

/// The channel that the examination announces on. Servers do not listen to it.
const CHANNEL: &str = "warren_examination";

/// Looks at the database of this URL, and changes nothing in it. Blocks.
///
/// # Errors
/// Why it cannot be looked at.
pub fn examine(url: &Secret) -> Result<Examination, StoreError> {
    let Address { config, shown } = Address::parse(url)?;
    let is_elsewhere = !super::address::is_here(&config);
    let looked = || -> Result<Examination, Failure> {
        let no_runtime = |error: std::io::Error| Failure::Away(error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(no_runtime)?;
        runtime.block_on(look(&config, is_elsewhere))
    };
    looked().map_err(|failure| failure.of(&shown))
}

/// How many rows of usage wait in the file beside a shared database; `None`: there is no such file, or it cannot be
/// read.
pub fn waiting_rows(file: &Path) -> Option<u64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let file = File::open_with_flags(file, flags).ok()?;
    let count = "SELECT COUNT(*) FROM unsent_usage";
    file.query_row(count, [], |row| row.get::<_, i64>(0)).ok().map(i64::unsigned_abs)
}

async fn look(config: &Config, is_elsewhere: bool) -> Result<Examination, Failure> {
    let (mut client, heard) = connect(config).await?;
    let query = in_time(client.query_one(
        "SELECT current_setting('server_version_num')::INT AS version,
            COALESCE((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE) AS is_encrypted,
            to_regnamespace('warren') IS NOT NULL AS has_schema,
            CASE WHEN to_regnamespace('warren') IS NULL
                THEN has_database_privilege(current_database(), 'CREATE')
                ELSE has_schema_privilege('warren', 'CREATE') END AS may_make,
            current_setting('transaction_read_only') = 'on' AS is_read_only,
            floor(extract(epoch FROM clock_timestamp()))::BIGINT AS clock",
        &[],
    ));
    let row = query.await?;
    let has_schema: bool = value(&row, "has_schema")?;
    let may_read = !has_schema || value::<bool>(&row, "may_make")?;
    let tables = if may_read { in_time_of(schema::version(&client)).await? } else { None };
    Ok(Examination {
        version: value(&row, "version")?,
        is_encrypted: value(&row, "is_encrypted")?,
        is_elsewhere,
        has_schema,
        may_make: value(&row, "may_make")?,
        is_read_only: value(&row, "is_read_only")?,
        tables,
        known_tables: schema::KNOWN,
        clock_ahead_s: value::<i64>(&row, "clock")? - now(),
        announces: announces(config, &mut client, heard).await?,
    })
}

/// Whether one connection hears what another announces. It does not if a connection pool in between gives each
/// transaction another connection.
async fn announces(
    config: &Config,
    client: &mut Client,
    mut heard: mpsc::Receiver<()>,
) -> Result<bool, Failure> {
    in_time(client.batch_execute(&format!("LISTEN {CHANNEL}"))).await?;
    let (other, _heard) = connect(config).await?;
    let announce = format!("BEGIN; SELECT pg_notify('{CHANNEL}', ''); COMMIT");
    in_time(other.batch_execute(&announce)).await?;
    // The database reports a notification with its next answer at the latest.
    in_time(client.batch_execute("SELECT 1")).await?;
    Ok(matches!(timeout(PATIENCE, heard.recv()).await, Ok(Some(()))))
}

/// A connection, and a receiver of the notifications that it hears.
async fn connect(config: &Config) -> Result<(Client, mpsc::Receiver<()>), Failure> {
    let late = |_| Failure::late(PATIENCE);
    let (client, mut connection) = timeout(PATIENCE, config.connect(Tls))
        .await
        .map_err(late)?
        .map_err(|error| away(&error))?;
    let (hears, heard) = mpsc::channel(1);
    let _drives: JoinHandle<()> = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if matches!(message, AsyncMessage::Notification(_)) {
                let _one_is_enough = hears.try_send(());
            }
        }
    });
    Ok((client, heard))
}

fn away(error: &tokio_postgres::Error) -> Failure {
    Failure::Away(chain(error))
}

async fn in_time<T>(
    query: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Failure> {
    timeout(PATIENCE, query)
        .await
        .map_err(|_| Failure::late(PATIENCE))?
        .map_err(|error| away(&error))
}

async fn in_time_of<T>(query: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(PATIENCE, query).await.map_err(|_| Failure::late(PATIENCE))?
}

fn now() -> i64 {
    i64::try_from(base::since_1970(SystemTime::now()).as_secs()).unwrap_or(i64::MAX)
}
