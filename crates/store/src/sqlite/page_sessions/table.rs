//! The table of the page's sessions.

pub(in crate::sqlite) const TABLE: &str = "CREATE TABLE page_sessions (
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
