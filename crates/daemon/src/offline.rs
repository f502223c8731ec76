//! Administration of a server that is not running, through its data directory.

use std::{path::Path, sync::Arc};

pub use access::KeyError;
use access::{Keys, Moment};
use anyhow::{Context, bail};
use api::admin::{
    action,
    bound::{RoomName, RoomNames},
    keys::{made, revoked, rotated, shown},
    usage::{UsageParameters, report},
};
use base::KeyId;
use jiff::Timestamp;
use protocol::admin::{CreateKey, KeyJson, usage::UsageReport};
use store::{AuditStore, KeyStore, RoomStore, SqliteStore, StoreError, UsageStore};

use crate::{
    data::{DataDir, has_database},
    options::ServeOptions,
};

/// The name of the command line in the audit log.
const ACTOR: &str = "command-line";

/// Parses a query of `/admin/usage`, such as `by=key&since=7d`.
///
/// # Errors
/// What is wrong with it.
pub fn usage_query(query: &str) -> anyhow::Result<UsageParameters> {
    UsageParameters::parse(Some(query), Timestamp::now()).map_err(anyhow::Error::msg)
}

/// The data directory of a server that is not running. No server can use it until this is dropped.
pub struct OfflineServer {
    _data: DataDir,
    store: Arc<SqliteStore>,
    keys: Keys,
}

impl OfflineServer {
    /// Opens the data directory of a server that has run.
    ///
    /// # Errors
    /// When there is no database in it, a server uses it, or one of them cannot be used.
    pub fn open(data_dir: &Path) -> anyhow::Result<Self> {
        if !has_database(data_dir) {
            bail!(
                "there is no database in {}: is this the server's data directory?",
                data_dir.display()
            );
        }
        Self::open_or_make(data_dir)
    }

    /// Opens a data directory, and makes it if there is none, for a server that has yet to run.
    ///
    /// # Errors
    /// When a server uses it, or it or its database cannot be used.
    pub fn open_or_make(data_dir: &Path) -> anyhow::Result<Self> {
        let data = DataDir::open(data_dir).context(
            "only a stopped server's data directory can be used; ask a running one with --server",
        )?;
        let store = Arc::new(SqliteStore::open(&data.database()?)?);
        let kept: Arc<dyn KeyStore> = Arc::<SqliteStore>::clone(&store);
        let keys = Keys::open(kept, Moment::now())?;
        Ok(Self { _data: data, store, keys })
    }

    /// Counts money as these settings of the server say.
    ///
    /// # Errors
    /// When their prices are not right.
    pub fn priced_by(self, options: &ServeOptions) -> anyhow::Result<Self> {
        let prices = crate::settings::prices(options.currency, options.prices.as_ref())?;
        self.keys.set_prices(Arc::new(prices));
        Ok(self)
    }

    /// Every key, oldest first.
    pub fn keys(&self) -> Vec<KeyJson> {
        // A room that cannot be read is shown by its id.
        let rooms = self.rooms().unwrap_or_default();
        self.keys.list().iter().map(|key| rooms.show(shown(key))).collect()
    }

    /// Makes a key.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self, asked: CreateKey) -> Result<KeyJson, KeyError> {
        let key = self.make(asked);
        let id = key.as_ref().map_or("", |key| key.id.as_str());
        self.record("key.create", id, key.as_ref().err());
        key
    }

    fn make(&self, asked: CreateKey) -> Result<KeyJson, KeyError> {
        let rooms = if asked.room.is_some() { self.rooms()? } else { RoomNames::default() };
        made(&self.keys, asked, &rooms, Moment::now()).map(|key| rooms.show(key))
    }

    fn rooms(&self) -> Result<RoomNames, StoreError> {
        let rooms = self.store.load_rooms()?.into_iter().map(|room| RoomName {
            id: room.id,
            short_code: room.short_code,
            spoken_code: room.spoken_code,
        });
        Ok(rooms.collect())
    }

    /// Gives a key a new text.
    ///
    /// # Errors
    /// When there is none, or it cannot be rotated.
    pub fn rotate(&self, id: &str) -> Result<KeyJson, KeyError> {
        let key = rotated(&self.keys, &KeyId::from(id));
        self.record("key.rotate", id, key.as_ref().err());
        key
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// When there is none, or that cannot be written.
    pub fn revoke(&self, id: &str) -> Result<KeyJson, KeyError> {
        let key = revoked(&self.keys, &KeyId::from(id), Moment::now());
        self.record("key.revoke", id, key.as_ref().err());
        key
    }

    /// What was used.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn usage(&self, asked: &UsageParameters) -> anyhow::Result<UsageReport> {
        let currency = self.keys.prices().currency;
        Ok(report(self.store.usage(&asked.query)?, &asked.query.by, currency))
    }

    fn record(&self, what: &str, target: &str, failed: Option<&KeyError>) {
        let outcome = failed.map_or_else(|| "done".to_owned(), ToString::to_string);
        if let Err(error) = self.store.add_action(&action(ACTOR, what, target, outcome)) {
            tracing::warn!(%error, "an action is not in the audit log");
        }
    }
}
