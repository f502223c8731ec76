//! The tables of what waits.

pub(in crate::sqlite) const TABLES: &str = "CREATE TABLE unsent_usage (
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
