//! The tables' text.

pub(in crate::sqlite) const TABLES: &str = "CREATE TABLE responses (
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
