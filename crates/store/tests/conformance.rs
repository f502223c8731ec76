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
#[cfg(feature = "testing")]
#[path = "conformance/import.rs"]
mod import;
#[path = "conformance/invitations.rs"]
mod invitations;
#[path = "conformance/keys.rs"]
mod keys;
#[path = "conformance/models.rs"]
mod models;
#[path = "conformance/old.rs"]
mod old;
#[cfg(feature = "testing")]
#[path = "conformance/outage.rs"]
mod outage;
#[path = "conformance/page_sessions.rs"]
mod page_sessions;
#[cfg(feature = "testing")]
#[path = "conformance/pools.rs"]
mod pools;
#[path = "conformance/responses.rs"]
mod responses;
#[path = "conformance/rooms.rs"]
mod rooms;
#[cfg(feature = "testing")]
#[path = "conformance/shared.rs"]
mod shared;
#[path = "conformance/unsent.rs"]
mod unsent;
#[path = "conformance/usage.rs"]
mod usage;
#[path = "conformance/workspace.rs"]
mod workspace;

use store::{
    AgeStore, AuditStore, InvitationStore, KeyStore, ModelStore, PageSessionStore, RoomStore,
    SqliteStore, UsageStore, VolatileStore, WorkspaceStore,
};

/// All traits of a store that several servers may share.
trait Store:
    KeyStore + InvitationStore + PageSessionStore + UsageStore + AuditStore + RoomStore + AgeStore
{
}

impl<T> Store for T where
    T: KeyStore
        + InvitationStore
        + PageSessionStore
        + UsageStore
        + AuditStore
        + RoomStore
        + AgeStore
{
}

/// All traits of a store that is one machine's own.
trait OwnStore: Store + ModelStore + WorkspaceStore {}

impl<T: Store + ModelStore + WorkspaceStore> OwnStore for T {}

/// Runs a check with a new store of every kind.
fn every_store(check: impl Fn(&dyn Store)) {
    every_own_store(|store| check(store));
    #[cfg(feature = "testing")]
    check(&shared::store());
}

/// Runs a check with a new store of every kind that is one machine's own.
fn every_own_store(check: impl Fn(&dyn OwnStore)) {
    check(&VolatileStore::default());
    let directory = tempfile::tempdir().unwrap();
    check(&SqliteStore::open(&directory.path().join("warren.db")).unwrap());
}
