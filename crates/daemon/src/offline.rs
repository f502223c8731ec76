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
use base::{KeyId, Secret};
use jiff::Timestamp;
use protocol::admin::{CreateKey, KeyJson, usage::UsageReport};
use store::{RoomStore, StoreError};

use crate::{
    data::{DataDir, has_database},
    options::ServeOptions,
    stores::{Stores, has_shared},
};

/// The name of the command line in the audit log.
const ACTOR: &str = "command-line";

/// Parses a query of `/admin/usage`, such as `by=key&since=7d`.
///
/// # Errors
/// The fault of the query.
pub fn usage_query(query: &str) -> anyhow::Result<UsageParameters> {
    UsageParameters::parse(Some(query), Timestamp::now()).map_err(anyhow::Error::msg)
}

/// The data of a server that is not running. No server can use the data directory until this is dropped.
pub struct OfflineServer {
    _data: DataDir,
    stores: Stores,
    keys: Keys,
}

impl OfflineServer {
    /// Opens the data directory of a server that has run. `database` is the URL of the database that it shares with
    /// others, if it does.
    ///
    /// # Errors
    /// When there is no database in the directory, a server uses the directory, or one of the databases cannot be
    /// used.
    pub fn open(data_dir: &Path, database: Option<&Secret>) -> anyhow::Result<Self> {
        if !has_database(data_dir) {
            bail!(
                "there is no database in {}: is this the server's data directory?",
                data_dir.display()
            );
        }
        Self::open_or_make(data_dir, database)
    }

    /// Opens a data directory, also of a server that has never run: what is missing is made.
    ///
    /// # Errors
    /// When a server uses the directory, or the directory or one of the databases cannot be used.
    pub fn open_or_make(data_dir: &Path, database: Option<&Secret>) -> anyhow::Result<Self> {
        refuse_without_database(data_dir, database)?;
        let data = DataDir::open(data_dir).context(
            "only a stopped server's data directory can be used; ask a running one with --server",
        )?;
        let stores = Stores::open(database, &data)?;
        let keys = Keys::open(Arc::clone(&stores.keys), Moment::now())?;
        Ok(Self { _data: data, stores, keys })
    }

    /// Counts money as these settings of the server say.
    ///
    /// # Errors
    /// When the prices in these settings are not valid.
    pub fn priced_by(self, options: &ServeOptions) -> anyhow::Result<Self> {
        let prices = crate::settings::prices(options.currency, options.prices.as_ref())?;
        self.keys.set_prices(Arc::new(prices));
        Ok(self)
    }

    /// Every key, oldest first.
    pub fn keys(&self) -> Vec<KeyJson> {
        // If the rooms cannot be read, keys are shown with the ids of their rooms.
        let rooms = self.rooms().unwrap_or_default();
        self.keys.list().iter().map(|key| rooms.show(shown(key))).collect()
    }

    /// Makes a key.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(&self, request: CreateKey) -> Result<KeyJson, KeyError> {
        let key = self.make(request);
        let id = key.as_ref().map_or("", |key| key.id.as_str());
        self.record("key.create", id, key.as_ref().err());
        key
    }

    fn make(&self, request: CreateKey) -> Result<KeyJson, KeyError> {
        let rooms = if request.room.is_some() { self.rooms()? } else { RoomNames::default() };
        made(&self.keys, request, &rooms, Moment::now()).map(|key| rooms.show(key))
    }

    fn rooms(&self) -> Result<RoomNames, StoreError> {
        // Servers that act as one have their rooms in the database. Whether this one does, its options say, which are
        // not all known here.
        let mut all = self.stores.rooms.load_rooms()?;
        if self.stores.shared.is_some() {
            all.extend(self.stores.own.load_rooms()?);
        }
        let rooms = all.into_iter().map(|room| RoomName {
            id: room.id,
            short_code: room.short_code,
            spoken_code: room.spoken_code,
        });
        Ok(rooms.collect())
    }

    /// Gives a key a new text.
    ///
    /// # Errors
    /// When there is no such key, or it cannot be rotated.
    pub fn rotate(&self, id: &str) -> Result<KeyJson, KeyError> {
        let key = rotated(&self.keys, &KeyId::from(id));
        self.record("key.rotate", id, key.as_ref().err());
        key
    }

    /// Revokes a key.
    ///
    /// # Errors
    /// When there is no such key, or the change cannot be written.
    pub fn revoke(&self, id: &str) -> Result<KeyJson, KeyError> {
        let key = revoked(&self.keys, &KeyId::from(id), Moment::now());
        self.record("key.revoke", id, key.as_ref().err());
        key
    }

    /// The usage in the ledger.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn usage(&self, parameters: &UsageParameters) -> anyhow::Result<UsageReport> {
        let currency = self.keys.prices().currency;
        Ok(report(self.stores.usage.usage(&parameters.query)?, &parameters.query.by, currency))
    }

    fn record(&self, what: &str, target: &str, failed: Option<&KeyError>) {
        let outcome = failed.map_or_else(|| "done".to_owned(), ToString::to_string);
        if let Err(error) = self.stores.audit.add_action(&action(ACTOR, what, target, outcome)) {
            tracing::warn!(%error, "an action is not in the audit log");
        }
    }
}

/// Refuses the data directory of a server that shares its keys, if the shared database is not given: the keys in the
/// directory's own file are others, which nobody means.
fn refuse_without_database(data_dir: &Path, database: Option<&Secret>) -> anyhow::Result<()> {
    if database.is_none() && has_shared(data_dir) {
        bail!(
            "the server of {} shares its keys in a database: name it with WARREN_DATABASE or in warren.toml, or ask \
             a running server",
            data_dir.display()
        );
    }
    Ok(())
}
