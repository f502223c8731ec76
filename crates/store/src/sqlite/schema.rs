//! The tables of the database, by the steps that made them.

use rusqlite_migration::M;

use super::usage::tables as usage_tables;

/// The migration steps. A released step never changes: older databases have passed it already.
pub(super) const STEPS: &[M<'_>] = &[
    M::up(MODELS),
    M::up(KEYS),
    M::up(usage_tables::TABLE),
    M::up(AUDIT),
    M::up(usage_tables::DAYS),
    M::up(ROOMS),
    M::up(KEYS_ROOM),
    M::up(usage_tables::ROWS),
    M::up(WORKSPACE),
    M::up(REACHED),
    M::up(INVITATIONS),
    M::up(usage_tables::COST),
    M::up(KEYS_COST),
    M::up(PAGE_SESSIONS),
    M::up(UNSENT),
    M::up(ROOMS_HOME),
    M::up(RESPONSES),
    M::up(KEYS_RESUME),
    M::up(usage_tables::RESUMES),
];

const MODELS: &str = "CREATE TABLE models (
        scope TEXT NOT NULL,
        model TEXT NOT NULL,
        first_seen INTEGER NOT NULL,
        last_seen INTEGER NOT NULL,
        PRIMARY KEY (scope, model)
    ) STRICT, WITHOUT ROWID;";

const KEYS: &str = "CREATE TABLE keys (
        id TEXT NOT NULL PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE,
        name TEXT NOT NULL,
        prefix TEXT NOT NULL,
        -- one a line
        scopes TEXT NOT NULL,
        models TEXT NOT NULL,
        rpm INTEGER,
        tpm INTEGER,
        concurrent INTEGER,
        -- TOKENS/day or TOKENS/month
        budget TEXT,
        -- seconds since 1970
        created INTEGER NOT NULL,
        expires INTEGER,
        revoked INTEGER,
        last_used INTEGER
    ) STRICT, WITHOUT ROWID;";

const AUDIT: &str = "CREATE TABLE audit (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        -- seconds since 1970
        at INTEGER NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        target TEXT NOT NULL,
        outcome TEXT NOT NULL
    ) STRICT;";

const ROOMS: &str = "CREATE TABLE rooms (
        id TEXT NOT NULL PRIMARY KEY,
        short_code TEXT NOT NULL UNIQUE,
        spoken_code TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        host_id TEXT NOT NULL,
        host_token BLOB NOT NULL,
        -- PHC
        password TEXT,
        -- JSON
        defaults TEXT,
        public INTEGER NOT NULL,
        owner TEXT,
        idle_ms INTEGER NOT NULL,
        -- milliseconds since 1970
        created INTEGER NOT NULL,
        used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE participants (
        room TEXT NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        session BLOB NOT NULL,
        json TEXT NOT NULL,
        PRIMARY KEY (room, id)
    ) STRICT, WITHOUT ROWID;";

const KEYS_ROOM: &str = "ALTER TABLE keys ADD COLUMN room TEXT;";

const WORKSPACE: &str = "CREATE TABLE workspace (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        json TEXT NOT NULL,
        PRIMARY KEY (kind, id)
    ) STRICT, WITHOUT ROWID;";

const REACHED: &str = "CREATE TABLE reached (
        id INTEGER PRIMARY KEY CHECK (id = 0),
        -- milliseconds since 1970
        at INTEGER NOT NULL
    ) STRICT;";

const INVITATIONS: &str = "CREATE TABLE invitations (
        id TEXT NOT NULL PRIMARY KEY,
        digest BLOB NOT NULL,
        name TEXT,
        -- seconds since 1970
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        used INTEGER,
        -- the id of a key
        key TEXT,
        revoked INTEGER
    ) STRICT, WITHOUT ROWID;";

/// A budget in money, such as `5.00USD/month`, and whether the key is barred from clouds.
const KEYS_COST: &str = "ALTER TABLE keys ADD COLUMN budget_money TEXT;
    ALTER TABLE keys ADD COLUMN no_cloud INTEGER NOT NULL DEFAULT 0;";

const PAGE_SESSIONS: &str = "CREATE TABLE page_sessions (
        id TEXT NOT NULL PRIMARY KEY,
        digest BLOB NOT NULL,
        -- the id of a key; null: the server's owner
        key TEXT,
        -- of the text of the key or of the owner's token
        holder BLOB NOT NULL,
        -- seconds since 1970
        created INTEGER NOT NULL,
        expires INTEGER NOT NULL,
        last_used INTEGER,
        browser TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;";

const UNSENT: &str = "CREATE TABLE unsent_usage (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        -- the run of the server that added it
        source TEXT NOT NULL,
        -- milliseconds since 1970
        at INTEGER NOT NULL,
        job TEXT NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        served_model TEXT,
        provider TEXT,
        api TEXT NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        estimated INTEGER NOT NULL,
        queue_ms INTEGER NOT NULL,
        first_byte_ms INTEGER,
        total_ms INTEGER NOT NULL,
        streaming INTEGER NOT NULL,
        requeues INTEGER NOT NULL,
        cost INTEGER
    ) STRICT;
    CREATE TABLE unsent_audit (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL,
        -- seconds since 1970
        at INTEGER NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        target TEXT NOT NULL,
        outcome TEXT NOT NULL
    ) STRICT;";

/// The server that orders a room's events.
const ROOMS_HOME: &str = "ALTER TABLE rooms ADD COLUMN home TEXT NOT NULL DEFAULT '';
    ALTER TABLE rooms ADD COLUMN home_start TEXT NOT NULL DEFAULT '';
    ALTER TABLE rooms ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;";

const RESPONSES: &str = "CREATE TABLE responses (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        previous TEXT,
        conversation TEXT,
        -- milliseconds since 1970
        created INTEGER NOT NULL,
        beat INTEGER,
        size INTEGER NOT NULL,
        -- JSON
        input TEXT NOT NULL,
        response TEXT NOT NULL
    ) STRICT;
    CREATE INDEX responses_owner ON responses (owner, created, id, size);
    CREATE INDEX responses_created ON responses (created);
    CREATE TABLE conversations (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT NOT NULL,
        -- milliseconds since 1970
        created INTEGER NOT NULL,
        used INTEGER NOT NULL,
        size INTEGER NOT NULL,
        -- JSON
        metadata TEXT NOT NULL
    ) STRICT;
    CREATE INDEX conversations_owner ON conversations (owner, used, id, size);
    CREATE INDEX conversations_used ON conversations (used);
    CREATE TABLE conversation_items (
        number INTEGER PRIMARY KEY,
        conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        id TEXT NOT NULL,
        -- JSON
        json TEXT NOT NULL,
        UNIQUE (conversation, id)
    ) STRICT;";

/// Whether a key's answers are resumed when their provider is lost; null: as the server does for all.
const KEYS_RESUME: &str = "ALTER TABLE keys ADD COLUMN resume_answers TEXT;";
