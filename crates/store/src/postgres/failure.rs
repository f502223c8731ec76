//! What went wrong: whether it is worth trying again.

use std::{error::Error, time::Duration};

use base::error::chain;
use tokio_postgres::error::{DbError, SqlState};

use crate::StoreError;

/// Why a piece of work failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The database cannot be reached, or has no time for this.
    Away(String),
    /// It does not accept the statement, or a row cannot be read.
    Refused(Box<dyn Error + Send + Sync>),
    /// Its tables are of a newer version.
    Newer { found: i32, known: i32 },
}

impl Failure {
    pub(super) fn late(within: Duration) -> Self {
        Self::Away(format!("it has not answered within {} s", within.as_secs()))
    }

    /// Whether a connection that had this is not to be used again.
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
            Some(told) if !may_pass(told) => Self::Refused(Box::new(error)),
            Some(_) | None => Self::Away(chain(&error)),
        }
    }
}

/// Whether what the database says may be over later: it stops or starts, has no room or no time, is another
/// server's turn, or lets nobody in just now.
fn may_pass(told: &DbError) -> bool {
    let code = told.code();
    let passing = [
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::QUERY_CANCELED,
        SqlState::READ_ONLY_SQL_TRANSACTION,
        SqlState::UNDEFINED_DATABASE,
    ];
    let classes = ["08", "28", "40", "53", "57P", "58"];
    passing.contains(code) || classes.iter().any(|class| code.code().starts_with(class))
}
