//! The ledger's tables, as the migration steps that led to them. A released step never changes, so a
//! table stands here once for each time that it was rebuilt.

use crate::usage::days::LATEST;

/// The number of low bits of a row's id that tell apart the rows of one millisecond. The other bits are its time.
pub(in crate::sqlite) const ID_BITS: u32 = 20;

/// An id has room for the latest time of a row.
const _: () = assert!(LATEST < i64::MAX >> ID_BITS);

/// The first form of the rows, each with all its names.
pub(in crate::sqlite) const TABLE: &str = "CREATE TABLE usage (
        id INTEGER PRIMARY KEY,
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
        requeues INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX usage_at ON usage (at);";

/// The sums of each whole day, so that a query over a year need not read every row.
///
/// They change in the transaction that adds or forgets rows, once for all rows of a batch.
pub(in crate::sqlite) const DAYS: &str = "CREATE TABLE usage_days (
        -- days since 1970
        day INTEGER NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        -- empty: not known
        provider TEXT NOT NULL,
        api TEXT NOT NULL,
        requests INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        PRIMARY KEY (day, key, model, provider, api)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO usage_days
        SELECT at / 86400000, key, model, COALESCE(provider, ''), api, COUNT(*),
            COALESCE(SUM(prompt_tokens), 0), COALESCE(SUM(completion_tokens), 0), SUM(estimated),
            SUM(outcome NOT IN ('answered', 'client_gone'))
        FROM usage GROUP BY 1, 2, 3, 4, 5;";

/// Rows of a third of the size that need no index: their ids contain their time, and the names that a row
/// shares with others of its day are stored once, with their sums.
///
/// The sums are computed again from the rows, so that each row finds its own. For people, a view shows
/// the rows in the first form.
pub(in crate::sqlite) const ROWS: &str = "ALTER TABLE usage RENAME TO usage_before;
    DROP TABLE usage_days;
    CREATE TABLE usage_days (
        -- days since 1970
        day INTEGER NOT NULL,
        key TEXT NOT NULL,
        model TEXT NOT NULL,
        -- empty: not known
        provider TEXT NOT NULL,
        api TEXT NOT NULL,
        -- what rows say for all of these
        id INTEGER NOT NULL UNIQUE,
        requests INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        errors INTEGER NOT NULL,
        PRIMARY KEY (day, key, model, provider, api)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO usage_days
        SELECT day, key, model, provider, api, ROW_NUMBER() OVER (), requests, prompt_tokens,
            completion_tokens, estimated, errors
        FROM (SELECT MIN(at, 8796093022206) / 86400000 AS day, key, model, COALESCE(provider, '') AS provider, api,
                COUNT(*) AS requests, COALESCE(SUM(prompt_tokens), 0) AS prompt_tokens,
                COALESCE(SUM(completion_tokens), 0) AS completion_tokens,
                SUM(estimated) AS estimated,
                SUM(outcome NOT IN ('answered', 'client_gone')) AS errors
            FROM usage_before GROUP BY 1, 2, 3, 4, 5);
    CREATE TABLE usage_rows (
        -- milliseconds since 1970, shifted left by 20 bits, and a number within the millisecond
        id INTEGER PRIMARY KEY,
        -- 128 bits
        job BLOB NOT NULL,
        -- usage_days.id: its day, key, model, provider and api
        sums INTEGER NOT NULL,
        served_model TEXT,
        -- not there: answered
        outcome TEXT,
        status INTEGER,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        queue_ms INTEGER NOT NULL,
        first_byte_ms INTEGER,
        total_ms INTEGER NOT NULL,
        -- 1: tokens are estimated; 2: a stream was asked for; the rest, from 4 on: how
        -- often it was moved to another provider
        flags INTEGER NOT NULL
    ) STRICT;
    INSERT INTO usage_rows
        SELECT (MIN(at, 8796093022206) << 20)
                + ROW_NUMBER() OVER (PARTITION BY MIN(at, 8796093022206) ORDER BY old.id) - 1,
            COALESCE(unhex(substr(job, 3)), CAST(job AS BLOB)), sums.id, served_model,
            NULLIF(outcome, 'answered'), status, old.prompt_tokens, old.completion_tokens,
            queue_ms, first_byte_ms, total_ms,
            (old.estimated <> 0) | ((streaming <> 0) << 1) | (requeues << 2)
        FROM usage_before AS old CROSS JOIN usage_days AS sums
            ON sums.day = MIN(at, 8796093022206) / 86400000 AND sums.key = old.key AND sums.model = old.model
                AND sums.provider = COALESCE(old.provider, '') AND sums.api = old.api;
    DROP TABLE usage_before;
    CREATE VIEW usage AS
        SELECT rows.id >> 20 AS at, 'r-' || lower(hex(job)) AS job, key, model, served_model,
            NULLIF(provider, '') AS provider, api, COALESCE(outcome, 'answered') AS outcome, status,
            rows.prompt_tokens, rows.completion_tokens, flags & 1 AS estimated, queue_ms,
            first_byte_ms, total_ms, flags >> 1 & 1 AS streaming, flags >> 2 AS requeues
        FROM usage_rows AS rows JOIN usage_days AS sums ON sums.id = rows.sums;";

/// Where other providers went on with answers, as JSON, here and in the rows that wait for a shared database.
pub(in crate::sqlite) const RESUMES: &str = "ALTER TABLE usage_rows ADD COLUMN resumes TEXT;
    ALTER TABLE unsent_usage ADD COLUMN resumes TEXT;
    DROP VIEW usage;
    CREATE VIEW usage AS
        SELECT rows.id >> 20 AS at, 'r-' || lower(hex(job)) AS job, key, model, served_model,
            NULLIF(provider, '') AS provider, api, COALESCE(outcome, 'answered') AS outcome, status,
            rows.prompt_tokens, rows.completion_tokens, flags & 1 AS estimated, queue_ms,
            first_byte_ms, total_ms, flags >> 1 & 1 AS streaming, flags >> 2 AS requeues, rows.cost, rows.resumes
        FROM usage_rows AS rows JOIN usage_days AS sums ON sums.id = rows.sums;";

/// The cost of each row, in millionths of the server's currency, and the sums of it.
pub(in crate::sqlite) const COST: &str = "ALTER TABLE usage_rows ADD COLUMN cost INTEGER;
    ALTER TABLE usage_days ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
    DROP VIEW usage;
    CREATE VIEW usage AS
        SELECT rows.id >> 20 AS at, 'r-' || lower(hex(job)) AS job, key, model, served_model,
            NULLIF(provider, '') AS provider, api, COALESCE(outcome, 'answered') AS outcome, status,
            rows.prompt_tokens, rows.completion_tokens, flags & 1 AS estimated, queue_ms,
            first_byte_ms, total_ms, flags >> 1 & 1 AS streaming, flags >> 2 AS requeues, rows.cost
        FROM usage_rows AS rows JOIN usage_days AS sums ON sums.id = rows.sums;";
