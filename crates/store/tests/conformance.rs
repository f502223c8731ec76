//! Every store behaves the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "conformance/age.rs"]
mod age;
#[path = "conformance/audit.rs"]
mod audit;
#[path = "conformance/file.rs"]
mod file;
#[path = "conformance/invitations.rs"]
mod invitations;
#[path = "conformance/keys.rs"]
mod keys;
#[path = "conformance/models.rs"]
mod models;
#[path = "conformance/old.rs"]
mod old;
#[path = "conformance/page_sessions.rs"]
mod page_sessions;
#[path = "conformance/rooms.rs"]
mod rooms;
#[path = "conformance/usage.rs"]
mod usage;
#[path = "conformance/workspace.rs"]
mod workspace;

use store::{
    AgeStore, AuditStore, InvitationStore, KeyStore, ModelStore, PageSessionStore, RoomStore,
    SqliteStore, UsageStore, VolatileStore, WorkspaceStore,
};

/// All traits of a store.
trait Store:
    ModelStore
    + KeyStore
    + InvitationStore
    + PageSessionStore
    + UsageStore
    + AuditStore
    + RoomStore
    + WorkspaceStore
    + AgeStore
{
}

impl<T> Store for T where
    T: ModelStore
        + KeyStore
        + InvitationStore
        + PageSessionStore
        + UsageStore
        + AuditStore
        + RoomStore
        + WorkspaceStore
        + AgeStore
{
}

/// Runs a check with a new store of every kind.
fn every_store(check: impl Fn(&dyn Store)) {
    check(&VolatileStore::default());
    let directory = tempfile::tempdir().unwrap();
    check(&SqliteStore::open(&directory.path().join("warren.db")).unwrap());
}
