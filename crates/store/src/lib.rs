//! Durable state behind traits: embedded in SQLite, or for several servers in PostgreSQL.
//!
//! - [`models`]: which models have been served, and when last
//! - [`keys`]: who may do what, and how much
//! - [`invitations`]: by which machines join
//! - [`page_sessions`]: browsers that are signed in at the web page
//! - [`usage`]: the ledger, one row for each job
//! - [`pools`]: limits of keys that several servers share
//! - [`rooms`]: rooms and their participants
//! - [`responses`]: responses and conversations that clients asked to keep
//! - [`workspace`]: what the workspace keeps: projects, sessions, teams
//! - [`age`]: the time by which things are deleted for their age
//! - [`audit`]: who did what to the server
//! - [`changes`]: what other servers have changed, and what waits for the database that they share
//! - [`sqlite`]: the database file
//! - `postgres`: the database that several servers share, with the feature `postgres`
//! - `shared`: that database as one server uses it, with a copy in a file for the time while the database is away
//! - [`volatile`]: a store in memory, for tests and for defaults that store nothing
//! - [`import`]: what a server takes along into a database that several share
//! - [`examination`]: findings about a shared database, without a running server
//! - [`error`]: why durable state cannot be read or written
//!
//! Records are like the JSON of administration, but types of their own: they have typed ids, and numbers for times.

pub mod age;
pub mod audit;
pub mod changes;
pub mod error;
pub mod examination;
pub mod import;
pub mod invitations;
pub mod keys;
pub mod models;
pub mod page_sessions;
pub mod pools;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod responses;
pub mod rooms;
#[cfg(feature = "postgres")]
pub mod shared;
pub mod sqlite;
pub mod usage;
pub mod volatile;
pub mod workspace;

pub use age::{AgeClock, AgeStore};
pub use audit::{Action, AuditStore};
pub use changes::{Changes, WaitingRows};
pub use error::StoreError;
pub use examination::Examination;
pub use invitations::{InvitationRecord, InvitationStore};
pub use keys::{KeyDigest, KeyRecord, KeyStore};
pub use models::{ModelMemory, ModelStore, SeenModel};
pub use page_sessions::{PageSessionRecord, PageSessionStore};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use responses::{
    ChainBounds, ConversationRecord, ItemRecord, KeptBounds, ResponseRecord, ResponseStore,
};
pub use rooms::{ParticipantRecord, RoomHome, RoomRecord, RoomStore, RoomUse};
#[cfg(feature = "postgres")]
pub use shared::SharedStore;
pub use sqlite::SqliteStore;
pub use usage::{UsageAnswer, UsageEntry, UsageGroup, UsageQuery, UsageStore};
pub use volatile::VolatileStore;
pub use workspace::{Change, Fact, WorkspaceStore};
