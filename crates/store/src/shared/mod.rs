//! The data that several servers share, as one server uses it: the database, and a file of its own beside it.
//!
//! The file has a copy of the keys, invitations and page sessions, with which the server starts while the database is
//! away. It also has the rows of the ledger and of the audit log that the database has not taken yet. Changes are made
//! in the database alone. Only while it is away, the revocation of a key and the end of a page session are noted in
//! the file.
//!
//! - `copies`: keys, invitations and page sessions
//! - `limits`: limits of keys
//! - `uncopied`: rooms, stored responses and conversations, of which there is no copy
//! - `unsent`: the ledger and the audit log

/// Implements a trait for [`SharedStore`] whose calls all go to the database. Each answer is noted.
macro_rules! in_database_alone {
    ($store:ident: $($call:ident($($value:ident: $kind:ty),*) -> $answer:ty;)+) => {
        impl $store for SharedStore {
            $(fn $call(&self, $($value: $kind),*) -> Result<$answer, StoreError> {
                self.note(self.database.$call($($value),*))
            })+
        }
    };
}

mod copies;
mod limits;
mod uncopied;
mod unsent;

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize},
    },
    time::Duration,
};

use base::Secret;
use rand::RngExt;

pub use self::unsent::Delivery;
use crate::{
    AgeStore, Change, Fact, PostgresStore, SqliteStore, StoreError, WorkspaceStore,
    postgres::{PerTable, Revisions},
};

/// The kind of the fact whose id says which database the file has a copy of.
const COPY_OF: &str = "copy_of";

/// The kind of the facts that say which page sessions have ended and still have to be deleted in the database.
const ENDED: &str = "ended_page_session";

/// The store of a server that shares its state with others.
pub struct SharedStore {
    database: PostgresStore,
    own: SqliteStore,
    seen: Mutex<Seen>,
    /// The ids of page sessions that ended while the database was away, also before this start. They cannot be more
    /// than there are sessions.
    ended: Mutex<BTreeSet<String>>,
    /// This run of the server, as a source of rows.
    source: String,
    /// How many rows of usage wait.
    waiting: AtomicU64,
    /// Held while rows of usage come or go and are counted.
    counting: Mutex<()>,
    /// Whether rows were added since the last wait for rows.
    rows: Arc<(Mutex<bool>, Condvar)>,
    /// The number of this run's last report about limits.
    reports: AtomicU64,
    /// The number of servers that the database named last.
    servers: AtomicU64,
    /// How many rows are sent at once: fewer after a batch has failed, so that a slow database takes them in time.
    batch: AtomicUsize,
}

/// The number up to which changes of each table are known; `None`: the whole table has to be read.
type Seen = PerTable<Option<i64>>;

/// Whether each table has changes that this server has not read.
pub type Stale = PerTable<bool>;

impl SharedStore {
    /// The store in the database of this URL, with this file. While the database is away, a server that has a copy
    /// of it starts with that.
    ///
    /// # Errors
    /// When the text is not a URL, the file cannot be used, or the database cannot and there is no copy of it.
    pub fn open(url: &Secret, file: &Path) -> Result<Self, StoreError> {
        let (database, own) = (PostgresStore::new(url)?, SqliteStore::open(file)?);
        if let Err(error) = database.revisions()
            && !(error.is_unavailable() && has_copy(&own, database.shown())?)
        {
            return Err(error);
        }
        let source = format!("{:032x}", rand::rng().random::<u128>());
        let ended = own.load_facts(ENDED)?.into_iter().map(|fact| fact.id).collect();
        let (seen, ended, counting) = (Mutex::default(), Mutex::new(ended), Mutex::default());
        let waiting = AtomicU64::new(own.sent_usage(i64::MIN)?);
        let (rows, batch) = (Arc::default(), AtomicUsize::new(unsent::BATCH));
        let (reports, servers) = (AtomicU64::new(0), AtomicU64::new(0));
        Ok(Self {
            database,
            own,
            seen,
            ended,
            source,
            waiting,
            counting,
            rows,
            reports,
            servers,
            batch,
        })
    }

    /// Where the database is, without its secrets.
    pub fn shown(&self) -> &str {
        self.database.shown()
    }

    /// Why the database or the file cannot be used, and what that means; `None` while all is well. Does not wait.
    pub fn problem(&self) -> Option<String> {
        let Some(problem) = self.database.problem() else { return self.own.problem() };
        let waiting = self.waiting();
        Some(format!(
            "{problem}; known keys work, nothing can be changed, and {waiting} rows of usage wait on this machine's disk"
        ))
    }

    /// Looks at the file as [`SqliteStore::look`] does.
    pub fn look(&self, thoroughly: bool) -> Option<String> {
        self.own.look(thoroughly);
        self.problem()
    }

    /// Waits until another server changes something, or for this long.
    pub fn wait_for_change(&self, most: Duration) {
        self.database.wait_for_change(most);
    }

    /// Ends all waits.
    pub fn wake(&self) {
        self.database.wake();
        self.ring();
    }

    /// The tables that have to be read again.
    ///
    /// # Errors
    /// When the database is away.
    pub fn stale(&self) -> Result<Stale, StoreError> {
        let Revisions { keys, invitations, page_sessions, rooms } =
            self.note(self.database.revisions())?;
        let seen = self.seen();
        Ok(Stale {
            keys: seen.keys != Some(keys),
            invitations: seen.invitations != Some(invitations),
            page_sessions: seen.page_sessions != Some(page_sessions),
            rooms: seen.rooms != Some(rooms),
        })
    }

    /// Notes an answer of the database. If the database was away, all tables are read again once it is back.
    fn note<T>(&self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if answer.as_ref().is_err_and(StoreError::is_unavailable) {
            *self.seen() = Seen::default();
        }
        answer
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that the file has a copy of this database.
    fn note_copy(&self) -> Result<(), StoreError> {
        let (kind, id) = (COPY_OF.to_owned(), self.shown().to_owned());
        self.own.change_facts(&[Change::Keep(Fact { kind, id, json: "{}".to_owned() })])
    }
}

fn has_copy(own: &SqliteStore, of: &str) -> Result<bool, StoreError> {
    Ok(own.load_facts(COPY_OF)?.iter().any(|fact| fact.id == of))
}

impl AgeStore for SharedStore {
    fn load_reached(&self) -> Result<Option<u64>, StoreError> {
        match self.note(self.database.load_reached()) {
            Err(error) if error.is_unavailable() => self.own.load_reached(),
            answer => answer,
        }
    }

    /// While the database is away, the time is stored in the file alone; the database gets a later one.
    fn save_reached(&self, at_ms: u64) -> Result<(), StoreError> {
        self.own.save_reached(at_ms)?;
        match self.note(self.database.save_reached(at_ms)) {
            Err(error) if error.is_unavailable() => Ok(()),
            answer => answer,
        }
    }
}
