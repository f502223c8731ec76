//! Durable state behind traits, embedded in SQLite.
