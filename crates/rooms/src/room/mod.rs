//! One room.
//!
//! Its state is pure (`state`) and sits behind a lock that is held for moments, never on the
//! disk. A second lock is held during writes to the disk, so that the disk and the state
//! never differ. The order is: that lock, then the state's, then a log's.
//!
//! - `joining`: participants that join, connect and leave
//! - `keeping`: what is stored of it, and for how long
//! - `telling`: its events for watchers

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use base::{KeyId, RoomId, Scope};
use protocol::room::{
    Capabilities, ParticipantInfo, RoomInfo, RoomSummary, RuntimeConfig, Selector,
};
use store::{KeyDigest, RoomRecord, RoomStore};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    error::RoomError,
    events::{Bounds, Log, Source},
    participant::Kind,
    password::Password,
    state::RoomState,
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
    /// A participant with an endpoint may wait for its connection.
    pub(crate) uncalled: Notify,
}

/// One room. Its methods lock it for a moment, and never wait, but for those that say that they
/// block.
pub struct Room {
    house: Arc<House>,
    source: Arc<Source>,
    short_code: Arc<str>,
    spoken_code: String,
    host_id: String,
    host_token: KeyDigest,
    created: u64,
    /// After how many milliseconds without use it ends.
    idle: u64,
    /// When it was last used, and when that was last written.
    used: AtomicU64,
    used_kept: AtomicU64,
    /// Held while something of it is written.
    writing: Mutex<()>,
    state: Mutex<RoomState>,
    log: Arc<Log>,
    closed: CancellationToken,
}

const CLOSED: &str = "this room was closed: make another with `warren room create`";

/// The participants that a selector finds in a room now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Available {
    /// Somebody who is connected, or was a moment ago: worth waiting for. Under this name they offer
    /// themselves to the dispatcher.
    Known(String),
    /// One participant, which is not connected.
    Disconnected {
        /// Its id.
        id: String,
    },
    /// Nobody.
    Nobody,
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
    /// How it is connected.
    pub kind: Kind,
    /// How many requests it takes at once.
    pub max_concurrent: u32,
    /// The endpoints of its backend.
    pub capabilities: Capabilities,
    /// How it generates by default: its own defaults, over the room's.
    pub defaults: RuntimeConfig,
}

impl Room {
    /// The room that is kept so.
    pub(crate) fn new(house: &Arc<House>, record: RoomRecord, password: Option<Password>) -> Self {
        let RoomRecord { id, short_code, spoken_code, name, host_id, host_token, .. } = record;
        // What cannot be read is left out; it was checked before it was written.
        let defaults = record.defaults.as_deref().and_then(|json| serde_json::from_str(json).ok());
        let source = Source::new(id, record.public, record.owner);
        source.set_guarded(password.is_some());
        Self {
            house: Arc::clone(house),
            source: Arc::new(source),
            short_code: short_code.into(),
            spoken_code,
            host_id,
            host_token,
            created: record.created,
            idle: record.idle_ms,
            used: AtomicU64::new(record.used),
            used_kept: AtomicU64::new(record.used),
            writing: Mutex::new(()),
            state: Mutex::new(RoomState::new(name, password, defaults.unwrap_or_default())),
            log: Log::new(Bounds::ROOM, house.clock.now()),
            closed: CancellationToken::new(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &RoomId {
        self.source.id()
    }

    /// It, as far as it decides who may see it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The scope of its participants.
    pub fn scope(&self) -> Scope {
        Scope::room(self.id())
    }

    /// Its six-character code.
    pub fn short_code(&self) -> &str {
        &self.short_code
    }

    /// The code to say aloud.
    pub fn spoken_code(&self) -> &str {
        &self.spoken_code
    }

    /// Its name, for people.
    pub fn name(&self) -> String {
        self.state().name.clone()
    }

    /// Whether joining and using it need a password.
    pub fn has_password(&self) -> bool {
        self.state().password.is_some()
    }

    /// Whether it is listed for everybody.
    pub fn is_public(&self) -> bool {
        self.source.is_public()
    }

    /// The key that made it.
    pub fn owner(&self) -> Option<&KeyId> {
        self.source.owner()
    }

    /// It, as stock clients see it: `code` is the short one.
    pub fn summary(&self) -> RoomSummary {
        self.summary_of(&self.state())
    }

    /// It, as the spec's messages show it: `code` is the spoken one.
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

    /// How participants generate by default.
    pub fn defaults(&self) -> RuntimeConfig {
        self.state().defaults.clone()
    }

    /// The participants that a selector finds. Counts as a use of the room.
    pub fn find(&self, selector: &Selector, now: u64) -> Available {
        self.use_at(now);
        self.state().find(selector, now)
    }

    /// Whether a text is the host's token.
    pub fn is_host(&self, shown: Option<&str>) -> bool {
        token::is_token(shown, &self.host_token)
    }

    /// Until the room is closed. Cancel safe.
    pub async fn closed(&self) {
        self.closed.cancelled().await;
    }
}

/// Functions for the rest of the crate.
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

    /// Somebody uses it.
    fn use_at(&self, now: u64) {
        self.house.clock.hear(now);
        self.used.fetch_max(now, Ordering::Relaxed);
    }

    /// Its state, unless it is closed.
    fn open(&self) -> Result<MutexGuard<'_, RoomState>, RoomError> {
        let state = self.state();
        if state.closed { Err(RoomError::Invalid(CLOSED.to_owned())) } else { Ok(state) }
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
