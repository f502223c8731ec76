//! The kind of a failure: whether it is worth trying again.

use std::{error::Error, time::Duration};

use base::error::chain;
use tokio_postgres::error::DbError;

use crate::StoreError;

/// Why a piece of work failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database cannot be reached, is late or cannot do this now. The same may succeed later.
    Away(String),
    /// It does not accept a value of the statement, or a row cannot be read. The same fails again.
    Refused(Box<dyn Error + Send + Sync>),
    /// Its tables are of a newer version.
    Newer { found: i32, known: i32 },
}

impl Failure {
    pub(super) fn late(within: Duration) -> Self {
        Self::Away(format!("it has not answered within {} s", within.as_secs()))
    }

    /// Whether a connection with this failure must not be used again.
    pub(super) fn ends_its_connection(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    pub(super) fn of(self, database: &str) -> StoreError {
        let database = database.to_owned();
        match self {
            Self::Away(problem) => StoreError::Unavailable { database, problem },
            Self::Refused(source) => StoreError::Refused { database, source },
            Self::Newer { found, known } => StoreError::NewerTables { database, found, known },
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(refusal) if is_about_values(refusal) => Self::Refused(Box::new(error)),
            Some(_) | None => Self::Away(chain(&error)),
        }
    }
}

/// Whether the database refuses a value in a write, for example because another row has it, or because it
/// is too long for an index. All other refusals may pass: the database stops or starts, has no room or no time, or
/// lets nobody in.
fn is_about_values(refusal: &DbError) -> bool {
    let code = refusal.code().code();
    ["22", "23", "54"].iter().any(|class| code.starts_with(class))
}
