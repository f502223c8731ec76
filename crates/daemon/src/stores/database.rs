//! The shared database, looked at from outside of a server.

use std::path::Path;

use base::Secret;
pub use store::Examination;

use super::SHARED;

/// What is found of a shared database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// Where it is, without its secrets.
    pub shown: String,
    /// What was found, or why it cannot be looked at.
    pub found: Result<Examination, String>,
    /// How many rows of usage wait for it in this data directory; `None`: nobody has shared anything here.
    pub waiting: Option<u64>,
}

/// Looks at the database of this URL and at what waits for it in a data directory. Blocks.
pub fn examine(url: &Secret, data_dir: &Path) -> Examined {
    let waiting = waiting(&data_dir.join(SHARED));
    Examined { shown: base::redact_url(url.expose()), found: found(url), waiting }
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
