//! One room.
//!
//! Its state is pure (`state`) and sits behind a lock that is held only briefly, and never during
//! disk access. A second lock is held during writes to the disk, so that the disk and the state
//! never differ. The lock order is: the write lock, the state's, a log's.
//!
//! - `joining`: participants that join, connect and leave
//! - `keeping`: its storage and expiry
//! - `telling`: its events for watchers

use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use base::{KeyId, RoomId, Scope};
use protocol::room::{
    Capabilities, ParticipantInfo, RoomInfo, RoomSummary, RuntimeConfig, Selector,
};
use store::{KeyDigest, RoomHome, RoomRecord, RoomStore};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    error::RoomError,
    events::{Bounds, Log, Source},
    participant::Kind,
    password::Password,
    state::{RoomEnd, RoomState},
    token,
};

mod joining;
mod keeping;
mod telling;

pub(crate) use keeping::write_defaults;

/// The state that all rooms share.
pub(crate) struct House {
    pub(crate) store: Arc<dyn RoomStore>,
    pub(crate) clock: Clock,
    /// The messages of all rooms.
    pub(crate) log: Arc<Log>,
    /// Wakes the task that calls endpoints: a participant may be waiting for a connection.
    pub(crate) uncalled: Notify,
    /// This server, if it is one of several that act as one.
    pub(crate) own: OnceLock<RoomHome>,
}

impl House {
    /// This server as the home of rooms; empty where servers do not act as one.
    pub(crate) fn home(&self) -> RoomHome {
        self.own.get().cloned().unwrap_or_default()
    }
}

/// The holder of a token of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenHolder {
    Host,
    Participant,
}

/// One room. Its methods lock it briefly and never wait, except those documented as blocking.
pub struct Room {
    house: Arc<House>,
    source: Arc<Source>,
    short_code: Arc<str>,
    spoken_code: String,
    host_id: String,
    host_token: KeyDigest,
    created: u64,
    /// How many homes it has had, this one included; 0 where servers do not act as one.
    epoch: u64,
    /// It ends after this many milliseconds without use.
    idle: u64,
    /// When it was last used, and when that time was last written.
    used: AtomicU64,
    stored_use: AtomicU64,
    /// Held during writes to the disk.
    writing: Mutex<()>,
    state: Mutex<RoomState>,
    log: Arc<Log>,
    closed: CancellationToken,
}

const CLOSED: &str = "this room was closed: make another with `warren room create`";

/// The participants that a selector finds in a room now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Available {
    /// At least one is connected, or was a moment ago and is worth waiting for. They offer
    /// themselves to the dispatcher under this name.
    Known(String),
    /// One participant, which is not connected.
    Disconnected {
        /// Its id.
        id: String,
    },
    /// No participant, but there are others.
    Nobody,
    /// No participant, since nobody lends a model in the room now.
    Empty,
}

/// A participant's data for the connection that serves it.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedParticipant {
    /// Its id.
    pub id: String,
    /// Its nickname, for people.
    pub nickname: String,
    /// Its models; empty only while its backend has none.
    pub models: Vec<String>,
    /// Its kind of connection.
    pub kind: Kind,
    /// How many requests it takes at once.
    pub max_concurrent: u32,
    /// The endpoints of its backend.
    pub capabilities: Capabilities,
    /// Its default generation parameters: its own, over the room's.
    pub defaults: RuntimeConfig,
}

impl Room {
    /// A room from its stored record.
    pub(crate) fn new(house: &Arc<House>, record: RoomRecord, password: Option<Password>) -> Self {
        let RoomRecord { id, short_code, spoken_code, name, host_id, host_token, .. } = record;
        // An unreadable value is left out; it was checked before it was written.
        let defaults = record.defaults.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let source = Source::new(id, record.public, record.owner);
        source.set_guarded(password.is_some());
        // Ids must be greater than those of every earlier log of the room, also of one at another server.
        let log = match record.epoch {
            0 => Log::new(Bounds::ROOM, house.clock.now()),
            epoch => Log::of_epoch(Bounds::ROOM, epoch),
        };
        Self {
            house: Arc::clone(house),
            source: Arc::new(source),
            short_code: short_code.into(),
            spoken_code,
            host_id,
            host_token,
            created: record.created,
            epoch: record.epoch,
            idle: record.idle_ms,
            used: AtomicU64::new(record.used),
            stored_use: AtomicU64::new(record.used),
            writing: Mutex::new(()),
            state: Mutex::new(RoomState::new(name, password, defaults.unwrap_or_default())),
            log,
            closed: CancellationToken::new(),
        }
    }

    /// The room's id.
    pub fn id(&self) -> &RoomId {
        self.source.id()
    }

    /// The fields that decide who may see it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The scope of its participants.
    pub fn scope(&self) -> Scope {
        Scope::room(self.id())
    }

    /// The six-character code.
    pub fn short_code(&self) -> &str {
        &self.short_code
    }

    /// The spoken code.
    pub fn spoken_code(&self) -> &str {
        &self.spoken_code
    }

    /// The room's name, for people.
    pub fn name(&self) -> String {
        self.state().name.clone()
    }

    /// Whether joining and using it need a password.
    pub fn has_password(&self) -> bool {
        self.state().password.is_some()
    }

    /// Whether it is listed publicly.
    pub fn is_public(&self) -> bool {
        self.source.is_public()
    }

    /// The key that created it.
    pub fn owner(&self) -> Option<&KeyId> {
        self.source.owner()
    }

    /// Its summary for stock clients: `code` is the short one.
    pub fn summary(&self) -> RoomSummary {
        self.summary_of(&self.state())
    }

    /// Its description in the spec's messages: `code` is the spoken one.
    pub fn info(&self) -> RoomInfo {
        let shown = self.shown(&self.state());
        let (code, short_code) = (self.spoken_code.clone(), Some(self.short_code.to_string()));
        RoomInfo { code, spoken_code: None, short_code, ..shown }
    }

    /// Its participants, in the order in which they joined.
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        self.state().participants()
    }

    /// One participant.
    pub fn participant(&self, id: &str) -> Option<ParticipantInfo> {
        self.state().participant(id)
    }

    /// One participant, for the connection that serves it.
    pub fn served(&self, id: &str) -> Option<ServedParticipant> {
        self.state().served(id)
    }

    /// The participants' default generation parameters.
    pub fn defaults(&self) -> RuntimeConfig {
        self.state().defaults.clone()
    }

    /// The participants that a selector finds. Counts as a use of the room.
    pub fn find(&self, selector: &Selector, now: u64) -> Available {
        self.use_at(now);
        self.state().find(selector, now)
    }

    /// Whether a text is the host token.
    pub fn is_host(&self, shown: Option<&str>) -> bool {
        token::is_token(shown, &self.host_token)
    }

    /// Whose token a text is, if it is one of this room.
    pub(crate) fn token_holder(&self, shown: Option<&str>) -> Option<TokenHolder> {
        let shown = shown?;
        if self.is_host(Some(shown)) {
            return Some(TokenHolder::Host);
        }
        let digest = token::digest(shown);
        self.state().has_session(&digest).then_some(TokenHolder::Participant)
    }

    /// Waits until the room is closed, or another server has taken it over. Cancel safe.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// The number of its present epoch here: servers that act as one may have begun later ones.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }
}

/// Functions for other modules of the crate.
impl Room {
    pub(crate) const fn created(&self) -> u64 {
        self.created
    }

    fn summary_of(&self, state: &RoomState) -> RoomSummary {
        let participant_count = u32::try_from(state.count()).unwrap_or(u32::MAX);
        RoomSummary { room: self.shown(state), participant_count }
    }

    fn shown(&self, state: &RoomState) -> RoomInfo {
        RoomInfo {
            id: self.id().as_str().to_owned(),
            code: self.short_code.to_string(),
            name: state.name.clone(),
            host_id: self.host_id.clone(),
            created_at: self.created,
            defaults: (!state.defaults.is_empty()).then(|| state.defaults.public()),
            password_protected: state.password.is_some(),
            spoken_code: Some(self.spoken_code.clone()),
            short_code: None,
            public: self.is_public(),
            expires_at: Some(self.expires_at()),
        }
    }

    fn expires_at(&self) -> u64 {
        self.used.load(Ordering::Relaxed).saturating_add(self.idle)
    }

    /// Records a use of the room.
    fn use_at(&self, now: u64) {
        self.house.clock.hear(now);
        self.used.fetch_max(now, Ordering::Relaxed);
    }

    /// Its state, unless it is closed.
    fn open(&self) -> Result<MutexGuard<'_, RoomState>, RoomError> {
        let state = self.state();
        match state.end {
            None => Ok(state),
            Some(RoomEnd::Closed) => Err(RoomError::Invalid(CLOSED.to_owned())),
            Some(RoomEnd::Moved) => Err(RoomError::Moved),
        }
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
