//! Sessions of the web page. A session is a credential that stands for its holder: a key, or the server's owner. The
//! holder's own key decides what the session may do, and how much.
//!
//! - `session`: one session
//! - `holder`: whom it stands for
//! - `codes`: login codes, by which browsers get sessions

mod codes;
mod holder;
mod session;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use base::{PageSessionId, Secret};
use rand::RngExt;
use store::{Changes, KeyDigest, PageSessionRecord, PageSessionStore, StoreError, VolatileStore};

pub use self::{
    codes::{GOOD_FOR, LoginCodes, TooManyCodes},
    holder::Holder,
    session::PageSession,
};
use crate::{
    credential::{PAGE_PREFIX, Token, digest, has_session_form, new_token},
    moment::Moment,
};

/// How long a session lasts.
pub const LASTS: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The most sessions, and the most of one holder: beyond that the oldest end.
const MOST: usize = 1_000;
const MOST_OF_ONE: usize = 50;

/// The longest name of a browser, in characters.
const MAX_BROWSER: usize = 100;

/// The sessions of a server's page; clones share them.
#[derive(Clone)]
pub struct PageSessions(Arc<Inner>);

struct Inner {
    store: Arc<dyn PageSessionStore>,
    /// The administrator's token, which is the owner's.
    owner: Option<Token>,
    live: RwLock<HashMap<KeyDigest, Arc<PageSession>>>,
    /// Held for a whole change, including the write to the disk.
    changing: Mutex<()>,
    codes: LoginCodes,
}

/// A session that has just begun.
#[derive(Debug)]
pub struct NewPageSession {
    /// The session.
    pub session: Arc<PageSession>,
    /// Its text, which nobody has kept.
    pub text: Secret,
    /// The oldest session, if that has ended to make room for this one.
    pub displaced: Option<PageSessionId>,
}

impl PageSessions {
    /// Loads the sessions in `store`. Those of an owner with another token have ended.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open(store: Arc<dyn PageSessionStore>, owner: Token) -> Result<Self, StoreError> {
        let (current, former): (Vec<_>, Vec<_>) =
            store.load_page_sessions()?.into_iter().partition(|it| is_current(it, Some(&owner)));
        // If one stays in the store, the next start leaves it out, too.
        former.iter().for_each(|record| drop(store.forget_page_session(&record.id)));
        Ok(Self::of(store, Some(owner), live(current)))
    }

    /// Loads the sessions in a store that other servers use, too. Sessions of an owner with another token are those
    /// servers', and stay in the store.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn open_shared(store: Arc<dyn PageSessionStore>, owner: Token) -> Result<Self, StoreError> {
        let mut all = store.load_page_sessions()?;
        all.retain(|it| is_current(it, Some(&owner)));
        Ok(Self::of(store, Some(owner), live(all)))
    }

    /// Takes over the sessions that other servers have made or ended, which `load` reads. Returns the ids of those that
    /// have ended by that: their running answers have to end. Blocks on the store.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn refresh(
        &self,
        load: impl FnOnce() -> Result<Changes<PageSessionRecord>, StoreError>,
    ) -> Result<Vec<PageSessionId>, StoreError> {
        let _changing = self.changing();
        let Changes { whole, mut records } = load()?;
        records.retain(|it| is_current(it, self.0.owner.as_ref()));
        let mut live = self.live_mut();
        let mut ended = Vec::new();
        if whole {
            let left: HashSet<&KeyDigest> = records.iter().map(|record| &record.digest).collect();
            let gone = live.extract_if(|digest, _| !left.contains(digest));
            ended.extend(gone.filter(|(_, it)| it.end()).map(|(_, it)| it.id().clone()));
        }
        for record in records {
            if live.len() < 2 * MOST {
                live.entry(record.digest).or_insert_with(|| Arc::new(PageSession::new(record)));
            }
        }
        Ok(ended)
    }

    fn of(
        store: Arc<dyn PageSessionStore>,
        owner: Option<Token>,
        live: HashMap<KeyDigest, Arc<PageSession>>,
    ) -> Self {
        let (live, changing) = (RwLock::new(live), Mutex::default());
        Self(Arc::new(Inner { store, owner, live, changing, codes: LoginCodes::default() }))
    }

    /// Login codes.
    pub fn codes(&self) -> &LoginCodes {
        &self.0.codes
    }

    /// The server's owner; `None` where there is no administrator's token.
    pub fn owner(&self) -> Option<Holder> {
        self.0.owner.as_ref().map(|token| Holder::owner(token.digest()))
    }

    /// The server's owner, if this text is the administrator's token.
    pub(crate) fn owner_by(&self, text: &str) -> Option<Holder> {
        self.owner().filter(|_| self.0.owner.as_ref().is_some_and(|token| token.matches(text)))
    }

    /// Makes a session of a holder, which ends at `expires` at the latest (in seconds since 1970). Its text is returned
    /// only here. Too many of them end the oldest, whose running answers have to end, too. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be written; then none has ended.
    pub fn create(
        &self,
        holder: &Holder,
        browser: &str,
        expires: Option<u64>,
        now: Moment,
    ) -> Result<NewPageSession, StoreError> {
        let _changing = self.changing();
        let (text, lasts) = (new_token(PAGE_PREFIX), now.after(LASTS).seconds());
        let record = PageSessionRecord {
            id: format!("ps-{:016x}", rand::rng().random::<u64>()),
            digest: digest(text.expose()),
            key: holder.key().cloned(),
            holder: holder.digest(),
            created: now.seconds(),
            expires: expires.map_or(lasts, |at| at.min(lasts)),
            last_used: None,
            browser: shown(browser),
        };
        self.0.store.save_page_session(&record)?;
        let displaced = self.make_room(holder);
        let session = Arc::new(PageSession::new(record));
        self.live_mut().insert(*session.digest(), Arc::clone(&session));
        Ok(NewPageSession { session, text, displaced })
    }

    /// The session of this text, unless it has expired. Whether its holder still may do anything is not checked here
    /// but by [`Keys`](crate::keys::Keys).
    pub fn find(&self, text: &str, now: Moment) -> Option<Arc<PageSession>> {
        if !has_session_form(text) {
            return None;
        }
        let session = self.live().get(&digest(text)).cloned()?;
        (session.has_text(text) && !session.is_expired(now)).then_some(session)
    }

    /// All sessions that have not expired, the oldest first.
    pub fn list(&self, now: Moment) -> Vec<Arc<PageSession>> {
        let is_live = |session: &&Arc<PageSession>| !session.is_expired(now);
        let mut all: Vec<_> = self.live().values().filter(is_live).cloned().collect();
        all.sort_by(|a, b| a.age().cmp(&b.age()));
        all
    }

    /// Ends the session with this id. `None` if no session has it. Blocks on the disk.
    ///
    /// # Errors
    /// When that cannot be written; it has ended even then, but a restart brings it back.
    pub fn revoke(&self, id: &str) -> Result<Option<Arc<PageSession>>, StoreError> {
        let _changing = self.changing();
        let found = self.live().values().find(|session| session.id().as_str() == id).cloned();
        let Some(session) = found else { return Ok(None) };
        self.forget(&session)?;
        Ok(Some(session))
    }

    /// Ends the connections of sessions that have expired since the last call. Returns their ids.
    pub fn end_expired(&self, now: Moment) -> Vec<PageSessionId> {
        let live = self.live();
        let expired = live.values().filter(|session| session.is_expired(now) && session.end());
        expired.map(|session| session.id().clone()).collect()
    }

    /// Forgets the sessions that have expired. Blocks on the disk.
    ///
    /// # Errors
    /// When that cannot be written; they have ended even then.
    pub fn forget_expired(&self, now: Moment) -> Result<(), StoreError> {
        let _changing = self.changing();
        let all: Vec<_> = self.live().values().cloned().collect();
        all.iter().filter(|session| session.is_expired(now)).try_for_each(|it| self.forget(it))
    }

    /// Writes when sessions were last used. Blocks on the disk.
    ///
    /// # Errors
    /// When it cannot be written; the next call tries again.
    pub fn save_last_used(&self) -> Result<(), StoreError> {
        let used: Vec<_> = {
            let live = self.live();
            let used = live.values().filter_map(|it| Some((Arc::clone(it), it.unsaved_use()?)));
            used.collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        let rows: Vec<_> =
            used.iter().map(|(session, at)| (session.id().to_string(), *at)).collect();
        self.0.store.touch_page_sessions(&rows)?;
        used.iter().for_each(|(session, at)| session.saved_use(*at));
        Ok(())
    }

    /// Makes room for one more session of a holder. Returns the session that has ended for it.
    fn make_room(&self, holder: &Holder) -> Option<PageSessionId> {
        let mut all: Vec<_> = self.live().values().cloned().collect();
        all.sort_by(|a, b| a.age().cmp(&b.age()));
        let own: Vec<_> = all.iter().filter(|session| session.holder() == *holder).collect();
        let oldest = match (own.len() >= MOST_OF_ONE, all.len() >= MOST) {
            (true, _) => own.first().copied(),
            (false, true) => all.first(),
            (false, false) => None,
        }?;
        // If it stays in the store, the next start brings it back as the oldest, and it is the first to go again.
        let _ = self.forget(oldest);
        Some(oldest.id().clone())
    }

    /// Ends a session at once, then deletes it from the store.
    fn forget(&self, session: &PageSession) -> Result<(), StoreError> {
        self.live_mut().remove(session.digest());
        session.end();
        self.0.store.forget_page_session(session.id().as_str())
    }

    fn live(&self) -> RwLockReadGuard<'_, HashMap<KeyDigest, Arc<PageSession>>> {
        self.0.live.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn live_mut(&self) -> RwLockWriteGuard<'_, HashMap<KeyDigest, Arc<PageSession>>> {
        self.0.live.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a session is of a key, or of the owner with this token.
fn is_current(record: &PageSessionRecord, owner: Option<&Token>) -> bool {
    record.key.is_some() || owner.is_some_and(|owner| record.holder == owner.digest())
}

fn live(records: Vec<PageSessionRecord>) -> HashMap<KeyDigest, Arc<PageSession>> {
    records.into_iter().map(|it| (it.digest, Arc::new(PageSession::new(it)))).collect()
}

/// No sessions and no owner, and nothing is stored.
impl Default for PageSessions {
    fn default() -> Self {
        Self::of(Arc::new(VolatileStore::default()), None, HashMap::new())
    }
}

impl fmt::Debug for PageSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageSessions({})", self.live().len())
    }
}

/// A browser's description of itself, made safe for people to read.
fn shown(browser: &str) -> String {
    base::plain::stripped(browser).trim().chars().take(MAX_BROWSER).collect()
}

#[cfg(test)]
mod tests;
