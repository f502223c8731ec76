//! The shared database without a running server: looks at it, and takes a server's own records into it.

use std::path::Path;

use base::Secret;
pub use store::{
    Examination,
    import::{ImportCounts, Taken},
};

use super::SHARED;

/// The findings about a shared database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseReport {
    /// Where it is, without its secrets.
    pub shown: String,
    /// The findings, or why it cannot be looked at.
    pub found: Result<Examination, String>,
    /// How many rows of usage wait for it in this data directory; `None`: the server of this directory has never used
    /// a shared database, or its file cannot be read.
    pub waiting: Option<u64>,
}

/// Looks at the database of this URL, and counts the rows that wait for it in a data directory. Blocks.
pub fn examine(url: &Secret, data_dir: &Path) -> DatabaseReport {
    let waiting = waiting(&data_dir.join(SHARED));
    DatabaseReport { shown: base::redact_url(url.expose()), found: found(url), waiting }
}

/// Takes the keys, open invitations, page sessions, usage and the audit log of a stopped server's own file into the
/// database of this URL. What is there already stays; a dry run changes nothing. Blocks.
///
/// # Errors
/// When the server runs, its file or the database cannot be used, or the database has a key's text under another id.
#[cfg(feature = "postgres")]
pub fn import(url: &Secret, data_dir: &Path, is_dry: bool) -> anyhow::Result<ImportCounts> {
    use anyhow::Context;
    if !crate::data::has_database(data_dir) {
        anyhow::bail!(
            "there is no database in {}: is this the server's data directory?",
            data_dir.display()
        );
    }
    let data = crate::data::DataDir::open(data_dir).context("stop the server first")?;
    let own = store::SqliteStore::open(&data.database()?)?;
    let now = access::Moment::now().seconds();
    Ok(store::PostgresStore::new(url)?.import(&own, now, is_dry)?)
}

/// Stands in for the import in a program without PostgreSQL.
///
/// # Errors
/// Always.
#[cfg(not(feature = "postgres"))]
pub fn import(_: &Secret, _: &Path, _: bool) -> anyhow::Result<ImportCounts> {
    anyhow::bail!("this program was built without PostgreSQL: build it with the feature postgres")
}

#[cfg(feature = "postgres")]
fn found(url: &Secret) -> Result<Examination, String> {
    store::postgres::examine(url).map_err(|error| base::error::chain(&error))
}

#[cfg(feature = "postgres")]
fn waiting(file: &Path) -> Option<u64> {
    store::postgres::waiting_rows(file)
}

#[cfg(not(feature = "postgres"))]
fn found(_: &Secret) -> Result<Examination, String> {
    Err("this program was built without PostgreSQL".to_owned())
}

#[cfg(not(feature = "postgres"))]
fn waiting(_: &Path) -> Option<u64> {
    None
}
