//! A room of another server, as far as the shared store tells.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::RoomId;
use protocol::room::{RoomInfo, RoomSummary, RuntimeConfig};
use store::{RoomHome, RoomRecord, RoomUse};

use crate::{events::Source, token};

/// A room whose home is another server.
pub struct KnownRoom {
    record: RoomRecord,
    source: Source,
    used: AtomicU64,
    participants: AtomicU32,
}

impl KnownRoom {
    pub(super) fn new(record: RoomRecord) -> Self {
        let source = Source::new(record.id.clone(), record.public, record.owner.clone());
        source.set_guarded(record.password.is_some());
        let (used, participants) = (AtomicU64::new(record.used), AtomicU32::new(0));
        Self { record, source, used, participants }
    }

    /// The room's id.
    pub fn id(&self) -> &RoomId {
        &self.record.id
    }

    /// The server that is its home.
    pub fn home(&self) -> &RoomHome {
        &self.record.home
    }

    /// The number of its epoch: how many homes it has had.
    pub fn epoch(&self) -> u64 {
        self.record.epoch
    }

    /// The fields that decide who may see it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The six-character code.
    pub fn short_code(&self) -> &str {
        &self.record.short_code
    }

    /// The spoken code.
    pub fn spoken_code(&self) -> &str {
        &self.record.spoken_code
    }

    /// Its summary for stock clients, as [`Room::summary`](crate::Room::summary) has it.
    pub fn summary(&self) -> RoomSummary {
        let participant_count = self.participants.load(Ordering::Relaxed);
        RoomSummary { room: self.shown(), participant_count }
    }

    /// Its description in the spec's messages, as [`Room::info`](crate::Room::info) has it.
    pub fn info(&self) -> RoomInfo {
        let code = self.spoken_code().to_owned();
        let short_code = Some(self.short_code().to_owned());
        RoomInfo { code, spoken_code: None, short_code, ..self.shown() }
    }

    fn shown(&self) -> RoomInfo {
        let record = &self.record;
        let defaults = record.defaults.as_deref();
        let defaults: Option<RuntimeConfig> =
            defaults.and_then(|json| serde_json::from_str(json).ok());
        RoomInfo {
            id: record.id.as_str().to_owned(),
            code: record.short_code.clone(),
            name: record.name.clone(),
            host_id: record.host_id.clone(),
            created_at: record.created,
            defaults: defaults.map(|defaults| defaults.public()),
            password_protected: record.password.is_some(),
            spoken_code: Some(record.spoken_code.clone()),
            short_code: None,
            public: record.public,
            expires_at: Some(self.used.load(Ordering::Relaxed).saturating_add(record.idle_ms)),
        }
    }

    /// The password's hash, in PHC form.
    pub(super) fn password(&self) -> Option<&str> {
        self.record.password.as_deref()
    }

    pub(super) fn created(&self) -> u64 {
        self.record.created
    }

    pub(super) fn is_host(&self, shown: Option<&str>) -> bool {
        token::is_token(shown, &self.record.host_token)
    }

    /// The known facts about its use.
    pub(super) fn last_use(&self) -> RoomUse {
        RoomUse {
            room: self.id().clone(),
            used: self.used.load(Ordering::Relaxed),
            participants: self.participants.load(Ordering::Relaxed),
        }
    }

    pub(super) fn note_use(&self, usage: &RoomUse) {
        self.used.fetch_max(usage.used, Ordering::Relaxed);
        self.participants.store(usage.participants, Ordering::Relaxed);
    }
}
