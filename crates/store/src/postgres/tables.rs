//! The statements that make the tables. A released statement never changes: a later one alters its tables.

/// The numbers of changes, and the triggers' functions that assign the next one.
pub(super) const REVISIONS: &str = "CREATE TABLE revisions (
        name TEXT PRIMARY KEY,
        -- the number of the last change, and of the last deletion
        revision BIGINT NOT NULL,
        deleted BIGINT NOT NULL
    );
    INSERT INTO revisions VALUES ('keys', 0, 0), ('invitations', 0, 0), ('page_sessions', 0, 0);
    CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        UPDATE revisions SET revision = revision + 1 WHERE name = TG_TABLE_NAME RETURNING revision INTO NEW.changed;
        PERFORM pg_notify('warren', TG_TABLE_NAME);
        RETURN NEW;
    END $$;
    CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    BEGIN
        UPDATE revisions SET revision = revision + 1, deleted = revision + 1 WHERE name = TG_TABLE_NAME;
        PERFORM pg_notify('warren', TG_TABLE_NAME);
        RETURN NULL;
    END $$;";

/// Keys.
pub(super) const KEYS: &str = r#"CREATE TABLE keys (
        id TEXT COLLATE "C" PRIMARY KEY,
        digest BYTEA NOT NULL UNIQUE,
        name TEXT NOT NULL,
        prefix TEXT NOT NULL,
        scopes TEXT[] NOT NULL,
        models TEXT[] NOT NULL,
        rpm BIGINT,
        tpm BIGINT,
        concurrent BIGINT,
        -- TOKENS/day or TOKENS/month
        budget TEXT,
        -- such as 5.00USD/month
        budget_money TEXT,
        no_cloud BOOLEAN NOT NULL,
        room TEXT,
        -- seconds since 1970
        created BIGINT NOT NULL,
        expires BIGINT,
        revoked BIGINT,
        last_used BIGINT,
        -- the number of its last change
        changed BIGINT NOT NULL
    );
    CREATE INDEX keys_changed ON keys (changed);
    CREATE TRIGGER changed BEFORE INSERT OR UPDATE OF digest, name, prefix, scopes, models, rpm, tpm, concurrent,
        budget, budget_money, no_cloud, room, created, expires, revoked ON keys
        FOR EACH ROW EXECUTE FUNCTION note_change();
    CREATE TRIGGER deleted AFTER DELETE ON keys FOR EACH ROW EXECUTE FUNCTION note_deletion();"#;

/// Invitations.
pub(super) const INVITATIONS: &str = r#"CREATE TABLE invitations (
        id TEXT COLLATE "C" PRIMARY KEY,
        digest BYTEA NOT NULL,
        name TEXT,
        -- seconds since 1970
        created BIGINT NOT NULL,
        expires BIGINT NOT NULL,
        used BIGINT,
        -- the id of a key
        key TEXT,
        revoked BIGINT,
        -- the number of its last change
        changed BIGINT NOT NULL
    );
    CREATE TRIGGER changed BEFORE INSERT OR UPDATE ON invitations FOR EACH ROW EXECUTE FUNCTION note_change();
    CREATE TRIGGER deleted AFTER DELETE ON invitations FOR EACH ROW EXECUTE FUNCTION note_deletion();"#;

/// The page's sessions.
pub(super) const PAGE_SESSIONS: &str = r#"CREATE TABLE page_sessions (
        id TEXT COLLATE "C" PRIMARY KEY,
        digest BYTEA NOT NULL,
        -- the id of a key; null: the servers' owner
        key TEXT,
        -- of the text of the key or of the owner's token
        holder BYTEA NOT NULL,
        -- seconds since 1970
        created BIGINT NOT NULL,
        expires BIGINT NOT NULL,
        last_used BIGINT,
        browser TEXT NOT NULL,
        -- the number of its last change
        changed BIGINT NOT NULL
    );
    CREATE TRIGGER changed BEFORE INSERT OR UPDATE OF digest, key, holder, created, expires, browser ON page_sessions
        FOR EACH ROW EXECUTE FUNCTION note_change();
    CREATE TRIGGER deleted AFTER DELETE ON page_sessions FOR EACH ROW EXECUTE FUNCTION note_deletion();"#;

/// The ledger and its sums of each day. Names are compared byte by byte, whatever the language of the database.
pub(super) const USAGE: &str = r#"CREATE TABLE usage (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        -- milliseconds since 1970
        at BIGINT NOT NULL,
        job TEXT NOT NULL,
        key TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        served_model TEXT,
        provider TEXT COLLATE "C",
        api TEXT COLLATE "C" NOT NULL,
        outcome TEXT NOT NULL,
        status INTEGER,
        prompt_tokens BIGINT,
        completion_tokens BIGINT,
        estimated BOOLEAN NOT NULL,
        queue_ms BIGINT NOT NULL,
        first_byte_ms BIGINT,
        total_ms BIGINT NOT NULL,
        streaming BOOLEAN NOT NULL,
        requeues BIGINT NOT NULL,
        -- millionths of the servers' currency
        cost BIGINT
    );
    CREATE INDEX usage_at ON usage (at);
    CREATE TABLE usage_days (
        -- days since 1970
        day BIGINT NOT NULL,
        key TEXT COLLATE "C" NOT NULL,
        model TEXT COLLATE "C" NOT NULL,
        -- empty: not known
        provider TEXT COLLATE "C" NOT NULL,
        api TEXT COLLATE "C" NOT NULL,
        requests BIGINT NOT NULL,
        prompt_tokens BIGINT NOT NULL,
        completion_tokens BIGINT NOT NULL,
        estimated BIGINT NOT NULL,
        errors BIGINT NOT NULL,
        cost BIGINT NOT NULL,
        PRIMARY KEY (day, key, model, provider, api)
    );"#;

/// The audit log.
pub(super) const AUDIT: &str = "CREATE TABLE audit (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        -- seconds since 1970
        at BIGINT NOT NULL,
        who TEXT NOT NULL,
        what TEXT NOT NULL,
        target TEXT NOT NULL,
        outcome TEXT NOT NULL
    );";

/// Rooms and participants.
pub(super) const ROOMS: &str = r#"CREATE TABLE rooms (
        id TEXT COLLATE "C" PRIMARY KEY,
        short_code TEXT NOT NULL UNIQUE,
        spoken_code TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        host_id TEXT NOT NULL,
        host_token BYTEA NOT NULL,
        -- PHC
        password TEXT,
        -- JSON
        defaults TEXT,
        public BOOLEAN NOT NULL,
        owner TEXT,
        idle_ms BIGINT NOT NULL,
        -- milliseconds since 1970
        created BIGINT NOT NULL,
        used BIGINT NOT NULL
    );
    CREATE TABLE participants (
        room TEXT COLLATE "C" NOT NULL REFERENCES rooms (id) ON DELETE CASCADE,
        id TEXT COLLATE "C" NOT NULL,
        session BYTEA NOT NULL,
        json TEXT NOT NULL,
        PRIMARY KEY (room, id)
    );"#;

/// The server that orders a room's events, and the numbers of changes of rooms.
pub(super) const ROOM_HOMES: &str = r#"ALTER TABLE rooms ADD COLUMN home TEXT COLLATE "C" NOT NULL DEFAULT '',
        ADD COLUMN home_start TEXT NOT NULL DEFAULT '',
        ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0,
        -- the number of its last change
        ADD COLUMN changed BIGINT NOT NULL DEFAULT 0;
    INSERT INTO revisions VALUES ('rooms', 0, 0);
    CREATE TRIGGER changed BEFORE INSERT OR UPDATE OF short_code, spoken_code, name, host_token, password, defaults,
        public, owner, idle_ms, home, home_start, epoch ON rooms
        FOR EACH ROW EXECUTE FUNCTION note_change();
    CREATE TRIGGER deleted AFTER DELETE ON rooms FOR EACH ROW EXECUTE FUNCTION note_deletion();"#;

/// How far the time for deleting by age has come.
pub(super) const REACHED: &str = "CREATE TABLE reached (
        id INTEGER PRIMARY KEY CHECK (id = 0),
        -- milliseconds since 1970
        at BIGINT NOT NULL
    );";

/// Up to which row the rows of each run of a server were taken.
pub(super) const SOURCES: &str = "CREATE TABLE sources (
        source TEXT NOT NULL,
        list TEXT NOT NULL,
        -- the number of the last row that was taken
        last BIGINT NOT NULL,
        began TIMESTAMPTZ NOT NULL DEFAULT now(),
        PRIMARY KEY (source, list)
    );";

/// The use of keys, by the day. A trigger updates it, so that it also has the rows of servers of an older version.
pub(super) const USAGE_KEYS: &str = r#"CREATE TABLE usage_keys (
        key TEXT COLLATE "C" NOT NULL,
        -- days since 1970
        day BIGINT NOT NULL,
        tokens BIGINT NOT NULL,
        cost BIGINT NOT NULL,
        PRIMARY KEY (key, day)
    );
    CREATE FUNCTION note_usage() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
    DECLARE
        more_tokens BIGINT := NEW.prompt_tokens + NEW.completion_tokens;
        more_cost BIGINT := NEW.cost;
    BEGIN
        IF TG_OP = 'UPDATE' THEN
            more_tokens := more_tokens - OLD.prompt_tokens - OLD.completion_tokens;
            more_cost := more_cost - OLD.cost;
        END IF;
        -- Rows that are forgotten for their age were used all the same.
        IF more_tokens > 0 OR more_cost > 0 THEN
            INSERT INTO usage_keys AS known
                VALUES (NEW.key, NEW.day, GREATEST(more_tokens, 0), GREATEST(more_cost, 0))
                ON CONFLICT (key, day) DO UPDATE SET tokens = known.tokens + excluded.tokens,
                    cost = known.cost + excluded.cost;
        END IF;
        RETURN NULL;
    END $$;
    CREATE TRIGGER used AFTER INSERT OR UPDATE ON usage_days FOR EACH ROW EXECUTE FUNCTION note_usage();
    INSERT INTO usage_keys SELECT key, day, SUM(prompt_tokens + completion_tokens), SUM(cost)
        FROM usage_days GROUP BY key, day;"#;

/// Whether a key's answers are resumed when their provider is lost, and where other providers went on with answers.
pub(super) const RESUMES: &str = "ALTER TABLE keys ADD COLUMN resume_answers TEXT;
    DROP TRIGGER changed ON keys;
    CREATE TRIGGER changed BEFORE INSERT OR UPDATE OF digest, name, prefix, scopes, models, rpm, tpm, concurrent,
        budget, budget_money, no_cloud, room, created, expires, revoked, resume_answers ON keys
        FOR EACH ROW EXECUTE FUNCTION note_change();
    -- JSON
    ALTER TABLE usage ADD COLUMN resumes TEXT;";

/// Limits that servers share, and what each server holds of them.
pub(super) const POOLS: &str = r#"CREATE TABLE servers (
        -- a run of a server
        run TEXT PRIMARY KEY,
        -- of its last report
        number BIGINT NOT NULL,
        seen TIMESTAMPTZ NOT NULL
    );
    CREATE TABLE pools (
        key TEXT COLLATE "C" NOT NULL,
        -- the limit: concurrent, budget, money, tpm, rpm
        measure TEXT NOT NULL,
        -- the begin and the end of its day or month, in milliseconds since 1970; 0 without one
        began BIGINT NOT NULL,
        ends BIGINT NOT NULL,
        -- of what comes back with time: 60000 to a unit, and when it was so, in milliseconds since 1970
        level BIGINT,
        at BIGINT,
        PRIMARY KEY (key, measure, began)
    );
    CREATE TABLE slices (
        key TEXT COLLATE "C" NOT NULL,
        measure TEXT NOT NULL,
        began BIGINT NOT NULL,
        ends BIGINT NOT NULL,
        run TEXT NOT NULL,
        -- sums since the begin of the run: all that was given; what was used, as the server says; what jobs in flight
        -- are expected to use; what was used, as the ledger's rows say
        granted BIGINT NOT NULL,
        settled BIGINT NOT NULL,
        reserved BIGINT NOT NULL,
        taken BIGINT NOT NULL,
        PRIMARY KEY (key, measure, began, run)
    );
    CREATE INDEX slices_run ON slices (run, key);"#;

/// Stored responses and conversations.
pub(super) const RESPONSES: &str = r#"CREATE TABLE responses (
        id TEXT COLLATE "C" PRIMARY KEY,
        owner TEXT COLLATE "C" NOT NULL,
        previous TEXT,
        conversation TEXT,
        -- milliseconds since 1970
        created BIGINT NOT NULL,
        beat BIGINT,
        size BIGINT NOT NULL,
        -- JSON
        input TEXT NOT NULL,
        response TEXT NOT NULL
    );
    CREATE INDEX responses_owner ON responses (owner, created, id, size);
    CREATE INDEX responses_created ON responses (created);
    CREATE TABLE conversations (
        id TEXT COLLATE "C" PRIMARY KEY,
        owner TEXT COLLATE "C" NOT NULL,
        -- milliseconds since 1970
        created BIGINT NOT NULL,
        used BIGINT NOT NULL,
        size BIGINT NOT NULL,
        -- JSON
        metadata TEXT NOT NULL
    );
    CREATE INDEX conversations_owner ON conversations (owner, used, id, size);
    CREATE INDEX conversations_used ON conversations (used);
    CREATE TABLE conversation_items (
        number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        conversation TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
        id TEXT COLLATE "C" NOT NULL,
        -- JSON
        json TEXT NOT NULL,
        UNIQUE (conversation, id)
    );"#;
