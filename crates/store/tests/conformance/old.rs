//! Databases of older versions.

use std::path::Path;

use rusqlite::Connection;

/// The first version: models only.
const MODELS: &str = "CREATE TABLE models (scope TEXT NOT NULL, model TEXT NOT NULL,
        first_seen INTEGER NOT NULL, last_seen INTEGER NOT NULL,
        PRIMARY KEY (scope, model)) STRICT, WITHOUT ROWID;";

const KEYS: &str = "CREATE TABLE keys (id TEXT NOT NULL PRIMARY KEY, digest BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL, prefix TEXT NOT NULL, scopes TEXT NOT NULL, models TEXT NOT NULL,
        rpm INTEGER, tpm INTEGER, concurrent INTEGER, budget TEXT, created INTEGER NOT NULL,
        expires INTEGER, revoked INTEGER, last_used INTEGER) STRICT, WITHOUT ROWID;";

const USAGE: &str = "CREATE TABLE usage (id INTEGER PRIMARY KEY, at INTEGER NOT NULL,
        job TEXT NOT NULL, key TEXT NOT NULL, model TEXT NOT NULL, served_model TEXT,
        provider TEXT, api TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER,
        prompt_tokens INTEGER, completion_tokens INTEGER, estimated INTEGER NOT NULL,
        queue_ms INTEGER NOT NULL, first_byte_ms INTEGER, total_ms INTEGER NOT NULL,
        streaming INTEGER NOT NULL, requeues INTEGER NOT NULL) STRICT;
    CREATE INDEX usage_at ON usage (at);";

const AUDIT: &str = "CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL,
        who TEXT NOT NULL, what TEXT NOT NULL, target TEXT NOT NULL,
        outcome TEXT NOT NULL) STRICT;";

/// Before there were rooms.
const DAYS: &str = "CREATE TABLE usage_days (day INTEGER NOT NULL, key TEXT NOT NULL,
        model TEXT NOT NULL, provider TEXT NOT NULL, api TEXT NOT NULL, requests INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL, errors INTEGER NOT NULL,
        PRIMARY KEY (day, key, model, provider, api)) STRICT, WITHOUT ROWID;";

const ROOMS: &str = "CREATE TABLE rooms (id TEXT NOT NULL PRIMARY KEY,
        short_code TEXT NOT NULL UNIQUE, spoken_code TEXT NOT NULL UNIQUE, name TEXT NOT NULL,
        host_id TEXT NOT NULL, host_token BLOB NOT NULL, password TEXT, defaults TEXT,
        public INTEGER NOT NULL, owner TEXT, idle_ms INTEGER NOT NULL, created INTEGER NOT NULL,
        used INTEGER NOT NULL) STRICT, WITHOUT ROWID;
    CREATE TABLE participants (room TEXT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
        id TEXT NOT NULL, session BLOB NOT NULL, json TEXT NOT NULL,
        PRIMARY KEY (room, id)) STRICT, WITHOUT ROWID;";

const KEY_OF_A_ROOM: &str = "ALTER TABLE keys ADD COLUMN room TEXT;";

/// The tables that each version added, up to the last one whose ledger wrote all
/// names into each row.
const VERSIONS: [&str; 7] = [MODELS, KEYS, USAGE, AUDIT, DAYS, ROOMS, KEY_OF_A_ROOM];

/// An empty database of a version.
pub(crate) fn database(path: &Path, version: u8) -> Connection {
    let connection = Connection::open(path).unwrap();
    VERSIONS[..version.into()].iter().for_each(|tables| connection.execute_batch(tables).unwrap());
    connection.pragma_update(None, "user_version", version).unwrap();
    connection
}
