//! Stands in for the shared database in a program that was built without PostgreSQL.

use std::{path::Path, sync::Arc};

use access::{Invitations, Keys};
use anyhow::bail;
use base::Secret;
use rooms::Rooms;
use scheduler::Scheduler;
use store::SqliteStore;
#[cfg(feature = "nats")]
use store::{Changes, RoomRecord, StoreError};
use tokio_util::sync::CancellationToken;

use super::Stores;

/// The shared database, which this program cannot have.
pub(crate) enum Shared {}

impl Shared {
    pub(crate) fn problem(&self) -> Option<String> {
        match *self {}
    }

    pub(crate) fn look(&self, _thoroughly: bool) -> Option<String> {
        match *self {}
    }

    #[cfg(feature = "nats")]
    pub(crate) fn changed_rooms(&self) -> Result<Changes<RoomRecord>, StoreError> {
        match *self {}
    }
}

pub(super) fn open(_: &Arc<SqliteStore>, _: &Secret, _: &Path) -> anyhow::Result<Stores> {
    bail!(
        "this program was built without PostgreSQL, and cannot use --database: build it with the feature postgres"
    )
}

/// The tasks of the shared database, which this program cannot have.
pub(crate) enum SharingTasks {}

impl SharingTasks {
    pub(crate) fn start(
        stores: &Stores,
        _: &Keys,
        _: &Invitations,
        _: &Scheduler,
        _: Option<Rooms>,
        _: &CancellationToken,
    ) -> Option<Self> {
        stores.shared.as_ref().map(|shared| match **shared {})
    }

    pub(crate) async fn end(self) {
        match self {}
    }
}
