//! The stores of a server: this machine's own database, and the one that several servers share.
//!
//! - `shared`: the tasks of a server that shares its keys, usage and more in a database, with the feature `postgres`
//! - `absent`: stands in for it in a program without that feature
//! - `database`: the shared database without a running server

pub mod database;
#[cfg(not(feature = "postgres"))]
#[path = "absent.rs"]
mod shared;
#[cfg(feature = "postgres")]
mod shared;

use std::{path::Path, sync::Arc};

use access::Desk;
use base::Secret;
use store::{
    AgeStore, AuditStore, InvitationStore, KeyStore, PageSessionStore, ResponseStore, RoomStore,
    SqliteStore, UsageStore,
};
#[cfg(feature = "nats")]
use store::{Changes, RoomRecord, StoreError};

pub(crate) use self::shared::{Shared, SharingTasks};
use crate::data::{DataDir, private};

/// The file beside the shared database.
pub(crate) const SHARED: &str = "shared.db";

/// The stores of a server.
#[derive(Clone)]
pub(crate) struct Stores {
    /// This machine's own database, with its models, its workspace and its cluster, and with its rooms unless it
    /// shares them.
    pub(crate) own: Arc<SqliteStore>,
    pub(crate) keys: Arc<dyn KeyStore>,
    pub(crate) invitations: Arc<dyn InvitationStore>,
    pub(crate) page_sessions: Arc<dyn PageSessionStore>,
    pub(crate) usage: Arc<dyn UsageStore>,
    pub(crate) audit: Arc<dyn AuditStore>,
    /// Responses and conversations that clients asked to keep.
    pub(crate) responses: Arc<dyn ResponseStore>,
    /// The rooms of servers that act as one; a server that acts alone has them in `own`.
    pub(crate) rooms: Arc<dyn RoomStore>,
    pub(crate) ages: Arc<dyn AgeStore>,
    /// The database that it shares with other servers, if it does.
    pub(crate) shared: Option<Arc<Shared>>,
    /// Counts the use of limits that it shares with other servers, if it does.
    pub(crate) desk: Option<Desk>,
}

impl Stores {
    /// Opens this machine's database, and the shared one if there is one.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub(crate) fn open(database: Option<&Secret>, data: &DataDir) -> anyhow::Result<Self> {
        let own = Arc::new(SqliteStore::open(&data.database()?)?);
        let file = data.path().join(SHARED);
        match database {
            Some(url) => {
                // Made here, so that only its owner can read it.
                private().open(&file)?;
                shared::open(&own, url, &file)
            }
            None => {
                warn_of_a_forgotten_database(&file);
                Ok(Self::of(&own, &own, None))
            }
        }
    }

    /// The changes of the rooms by other servers since the last call; without a shared database there are none.
    /// Blocks.
    ///
    /// # Errors
    /// When the database is away.
    #[cfg(feature = "nats")]
    pub(crate) fn changed_rooms(&self) -> Result<Changes<RoomRecord>, StoreError> {
        match &self.shared {
            Some(shared) => shared.changed_rooms(),
            None => Ok(Changes { whole: true, records: Vec::new() }),
        }
    }

    fn of<S>(own: &Arc<SqliteStore>, all: &Arc<S>, shared: Option<Arc<Shared>>) -> Self
    where
        S: KeyStore
            + InvitationStore
            + PageSessionStore
            + UsageStore
            + AuditStore
            + ResponseStore
            + RoomStore
            + AgeStore
            + 'static,
    {
        Self {
            own: Arc::clone(own),
            keys: Arc::<S>::clone(all),
            invitations: Arc::<S>::clone(all),
            page_sessions: Arc::<S>::clone(all),
            usage: Arc::<S>::clone(all),
            audit: Arc::<S>::clone(all),
            responses: Arc::<S>::clone(all),
            rooms: Arc::<S>::clone(all),
            ages: Arc::<S>::clone(all),
            shared,
            desk: None,
        }
    }

    /// Why something cannot be kept, and what to do; `None` while all is well. Does not wait.
    pub(crate) fn problem(&self) -> Option<String> {
        let shared = || self.shared.as_ref().and_then(|shared| shared.problem());
        self.own.problem().or_else(shared)
    }

    /// Looks at the files, as [`SqliteStore::look`] does. Blocks.
    pub(crate) fn look(&self, thoroughly: bool) -> Option<String> {
        let shared = || self.shared.as_ref().and_then(|shared| shared.look(thoroughly));
        self.own.look(thoroughly).or_else(shared)
    }
}

/// Whether the server of a data directory has shared its state with others.
pub(crate) fn has_shared(data_dir: &Path) -> bool {
    data_dir.join(SHARED).exists()
}

fn warn_of_a_forgotten_database(file: &Path) {
    if file.exists() {
        tracing::warn!(
            "this server has shared its keys and its usage with others: without --database it has those of its own"
        );
    }
}
