//! Durable state behind traits, embedded in SQLite.
//!
//! - [`models`]: which models have been served, and when last
//! - [`sqlite`]: the database file
//! - [`volatile`]: the same in memory, for tests

pub mod models;
pub mod sqlite;
pub mod volatile;

pub use models::{ModelMemory, ModelStore, SeenModel};
pub use sqlite::SqliteStore;
pub use volatile::VolatileStore;

/// Why durable state cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be opened, read or written.
    #[error("the database {path} cannot be used: {hint}")]
    Database {
        /// The file.
        path: String,
        /// What to do.
        hint: &'static str,
        /// Why.
        source: rusqlite::Error,
    },
    /// The database was made by another version of Warren.
    #[error("the database {path} cannot be brought up to date")]
    Migration {
        /// The file.
        path: String,
        /// Why.
        source: rusqlite_migration::Error,
    },
}
