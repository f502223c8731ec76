//! The table of invitations.

pub(in crate::sqlite) const TABLE: &str = "CREATE TABLE invitations (
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
