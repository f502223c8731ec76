//! Why durable state cannot be read or written, and what to do about it.

use rusqlite::ErrorCode;

/// Why durable state cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened, read or written.
    #[error("the database {path} cannot be used: {hint}")]
    Database {
        /// The file.
        path: String,
        /// Advice.
        hint: &'static str,
        /// Why.
        source: rusqlite::Error,
    },
    /// The database file cannot be written.
    #[error(
        "the database {path} is read-only: make it and its directory writable for the user that \
         runs Warren, or give another directory with --data-dir"
    )]
    ReadOnly {
        /// The file.
        path: String,
    },
    /// The database is damaged.
    #[error(
        "the database {path} is damaged ({problem}): restore it from a backup, or move it away, \
         and Warren starts with an empty one, without its keys and its usage"
    )]
    Damaged {
        /// The file.
        path: String,
        /// The first finding.
        problem: String,
    },
    /// The database's files were moved, deleted, cut or replaced while it is open.
    #[error(
        "the database {path} is no longer the file that this server has open ({problem}): what is written \
         now would be lost at the next start, so nothing is. Move its files back, and the server goes on; \
         or stop the server and restore a backup"
    )]
    Misplaced {
        /// The file.
        path: String,
        /// The first finding.
        problem: String,
    },
    /// The database was made by a newer Warren.
    #[error(
        "the database {path} was made by a newer version of Warren: run that version, or give \
         this one another directory with --data-dir"
    )]
    TooNew {
        /// The file.
        path: String,
    },
    /// The database was made by an older version of Warren, and cannot be changed to this one's.
    #[error("the database {path} cannot be brought up to date; it is left as it was")]
    Migration {
        /// The file.
        path: String,
        /// Why.
        source: rusqlite_migration::Error,
    },
    /// The database that several servers share cannot be reached, or does not answer in time.
    #[error("the database {database} cannot be used now: {problem}; it is tried again")]
    Unavailable {
        /// Which one, without its secrets.
        database: String,
        /// Why.
        problem: String,
    },
    /// The database that several servers share refuses a statement, or holds something that cannot be read.
    #[error("the database {database} refuses this")]
    Refused {
        /// Which one, without its secrets.
        database: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The database that several servers share was brought up to date by a newer Warren.
    #[error(
        "the database {database} was brought up to date by a newer version of Warren (its tables are of \
         version {found}, and this one knows {known}): run that version"
    )]
    NewerTables {
        /// Which one, without its secrets.
        database: String,
        /// The version of its tables.
        found: i32,
        /// The last version that this program knows.
        known: i32,
    },
    /// A key that was to be taken along has the same text as another key in the shared database.
    #[error(
        "the key {key} of this server has the same text as the key {other} in the database {database}: nothing was \
         taken along. Revoke or rotate one of them, then try again"
    )]
    Clash {
        /// Which one, without its secrets.
        database: String,
        /// The key of the server's own file.
        key: String,
        /// The key in the database.
        other: String,
    },
    /// Too many rows wait for the database that several servers share.
    #[error("{most} rows wait for the database already, and no more are kept")]
    Full {
        /// The most that may wait.
        most: usize,
    },
    /// The given text is not the address of a database.
    #[error("{problem}: a database is given as postgres://USER:PASSWORD@HOST/NAME")]
    Address {
        /// Why not, without its secrets.
        problem: String,
    },
}

impl StoreError {
    /// Whether the same call may succeed later: the database is away, and nothing is wrong with the call.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn of(path: &str, source: rusqlite::Error) -> Self {
        Self::Database { path: path.to_owned(), hint: hint(&source), source }
    }
}

fn hint(error: &rusqlite::Error) -> &'static str {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            "it is damaged, or no database at all; restore it from a backup, or move it away, and \
             Warren starts with an empty one, without its keys and its usage"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            "make it and its directory writable for the user that runs Warren"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process holds it locked; it is tried again when that lets go"
        }
        Some(ErrorCode::DiskFull) => "the disk is full; make room on it",
        _ => "check that its directory is writable and its disk is well",
    }
}
