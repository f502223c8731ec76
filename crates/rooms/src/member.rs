//! One participant in the state of its room.

use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use base::{ClientAddress, ProviderId, RoomId, Secret};
use protocol::{
    model_use::is_for_chat,
    room::{
        Connection as Shown, ConnectionKind, ParticipantInfo, RuntimeConfig, Status,
        types::AnswerMetrics,
    },
};
use store::{KeyDigest, ParticipantRecord};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    participant::ConnectionEnd,
    room::ServedParticipant,
    stored::{StoredKind, StoredParticipant, record},
    token,
};

/// How long a silent participant keeps its id and its place in a full room, in milliseconds.
pub(crate) const OFFLINE: u64 = 30_000;

/// How long the server waits for a participant that reconnects, in milliseconds.
const COMING_BACK: u64 = 10_000;

/// The lifetime of a tunnel token, in milliseconds.
const TUNNEL_TOKEN: u64 = 60_000;

/// The most valid tunnel tokens at a time.
const MAX_TUNNEL_TOKENS: usize = 4;

/// How long a participant that is gone is remembered, in milliseconds.
pub(crate) const FORGOTTEN: u64 = 24 * 3_600_000;

/// The least of that time after a restart, in milliseconds.
const AFTER_RESTART: u64 = 3_600_000;

/// Signals a connection that it must end, or that its participant has changed.
#[derive(Default)]
pub(crate) struct End {
    why: OnceLock<ConnectionEnd>,
    token: CancellationToken,
    changed: Notify,
}

/// Whether a participant is connected.
pub(crate) enum Link {
    Up { serial: u64, provider: ProviderId, end: Arc<End> },
    Down { since: u64 },
}

pub(crate) struct Member {
    pub(crate) id: String,
    /// Its position in the order of arrival.
    pub(crate) order: u64,
    pub(crate) session: KeyDigest,
    pub(crate) stored: StoredParticipant,
    pub(crate) link: Link,
    /// When its connection last heard of it; 0 for never. The connection writes it without a lock.
    pub(crate) link_seen: Arc<AtomicU64>,
    /// Whether watchers think that it is offline.
    pub(crate) is_shown_offline: bool,
    /// Whether the stored record is out of date.
    pub(crate) stale: bool,
    tunnel_tokens: Vec<(KeyDigest, u64)>,
}

impl End {
    /// Tells the connection to end. The first reason counts.
    pub(crate) fn end(&self, why: ConnectionEnd) {
        // A connection that is already ending keeps its first reason.
        let _ = self.why.set(why);
        self.token.cancel();
    }

    /// Tells the connection that its participant joined again with other data.
    pub(crate) fn change(&self) {
        self.changed.notify_one();
    }

    /// Waits until its participant has changed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Waits until the connection must end. Returns the reason.
    pub(crate) async fn ended(&self) -> ConnectionEnd {
        self.token.cancelled().await;
        // The token is cancelled after the reason was set.
        self.why.get().copied().unwrap_or(ConnectionEnd::Removed)
    }
}

impl Member {
    /// A participant that joins.
    pub(crate) fn new(
        id: String,
        order: u64,
        session: KeyDigest,
        stored: StoredParticipant,
        now: u64,
    ) -> Self {
        Self {
            id,
            order,
            session,
            stored,
            link: Link::Down { since: now },
            link_seen: Arc::default(),
            is_shown_offline: false,
            stale: false,
            tunnel_tokens: Vec::new(),
        }
    }

    /// A participant from an earlier run. `None` when its record cannot be read.
    pub(crate) fn load(record: &ParticipantRecord, now: u64) -> Option<Self> {
        let mut stored: StoredParticipant = serde_json::from_str(&record.json).ok()?;
        // The server may have been off for a day: everybody gets an hour to come back.
        stored.seen = stored.seen.max(now.saturating_sub(FORGOTTEN - AFTER_RESTART));
        let id = record.id.as_str().to_owned();
        Some(Self { is_shown_offline: true, ..Self::new(id, 0, record.session, stored, now) })
    }

    /// Its record for the store.
    pub(crate) fn record(&self, room: &RoomId) -> ParticipantRecord {
        let stored = StoredParticipant { seen: self.seen(), ..self.stored.clone() };
        record(room, &self.id, self.session, &stored)
    }

    /// When it was last heard of.
    pub(crate) fn seen(&self) -> u64 {
        self.stored.seen.max(self.link_seen.load(Ordering::Relaxed))
    }

    pub(crate) fn heard(&mut self, now: u64) {
        self.stored.seen = self.stored.seen.max(now);
    }

    /// Whether it has a model.
    pub(crate) fn is_able(&self) -> bool {
        !self.stored.about.models.is_empty()
    }

    /// Whether it has a model for chat.
    pub(crate) fn answers(&self) -> bool {
        self.stored.about.models.iter().any(|model| is_for_chat(model))
    }

    /// Whether the server must call it and does not yet.
    pub(crate) const fn is_uncalled(&self) -> bool {
        matches!(self.stored.about.kind, StoredKind::Endpoint(_)) && !self.is_up()
    }

    /// Whether the server calls it at this address.
    pub(crate) fn is_called_at(&self, address: SocketAddr) -> bool {
        self.stored.about.kind == StoredKind::Endpoint(address)
    }

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.link, Link::Up { .. })
    }

    /// Whether it is connected, or is likely to be in a moment.
    pub(crate) fn is_awaited(&self, now: u64) -> bool {
        match self.link {
            Link::Up { .. } => true,
            Link::Down { since } => {
                self.stored.about.kind.comes_back() && now < since.saturating_add(COMING_BACK)
            }
        }
    }

    /// Whether its id is reserved for it.
    pub(crate) const fn holds_id(&self, now: u64) -> bool {
        now < self.held_until()
    }

    /// When the reservation of its id ends.
    pub(crate) const fn held_until(&self) -> u64 {
        match self.link {
            Link::Up { .. } => u64::MAX,
            Link::Down { since } => since.saturating_add(OFFLINE),
        }
    }

    /// Whether a text is its session token.
    pub(crate) fn is_session(&self, shown: Option<&str>) -> bool {
        token::is_token(shown, &self.session)
    }

    /// Whether a request from this address without a token can be its own: like stock participants,
    /// it has never shown its token, and it joined from this address, by way of a proxy or not.
    pub(crate) fn is_neighbour(&self, from: ClientAddress) -> bool {
        let joined = self.stored.from();
        let is_same = (joined.ip(), joined.is_by_proxy()) == (from.ip(), from.is_by_proxy());
        !self.stored.proven && is_same
    }

    pub(crate) fn tunnel_token(&mut self, now: u64) -> Secret {
        let token = Secret::from(token::uuid());
        self.tunnel_tokens.retain(|(_, until)| now < *until);
        // The oldest goes: it is the likeliest to be of an attempt that failed.
        if self.tunnel_tokens.len() == MAX_TUNNEL_TOKENS {
            self.tunnel_tokens.remove(0);
        }
        let until = now.saturating_add(TUNNEL_TOKEN);
        self.tunnel_tokens.push((token::digest(token.expose()), until));
        token
    }

    /// Whether a tunnel token is valid.
    pub(crate) fn has_tunnel_token(&self, shown: &str, now: u64) -> bool {
        let tokens = &self.tunnel_tokens;
        tokens.iter().any(|(digest, until)| now < *until && token::is_token(Some(shown), digest))
    }

    /// Uses up a tunnel token. Returns whether it was valid.
    pub(crate) fn redeem(&mut self, shown: &str, now: u64) -> bool {
        let is_it = |(digest, _): &(KeyDigest, u64)| token::is_token(Some(shown), digest);
        match self.tunnel_tokens.iter().position(is_it) {
            // Removed in any case, so that it opens one tunnel at most.
            Some(at) => now < self.tunnel_tokens.remove(at).1,
            None => false,
        }
    }

    /// Invalidates its tunnel tokens: another participant has this id.
    pub(crate) fn forget_tunnel_tokens(&mut self) {
        self.tunnel_tokens.clear();
    }

    /// Tells its connection to end, if there is one.
    pub(crate) fn end(&self, why: ConnectionEnd) {
        if let Link::Up { end, .. } = &self.link {
            end.end(why);
        }
    }

    /// Its status while it has `in_flight` requests.
    pub(crate) const fn status(&self, in_flight: u32) -> Status {
        match self.link {
            Link::Down { .. } => Status::Offline,
            Link::Up { .. } if in_flight >= self.stored.about.max_concurrent => Status::Busy,
            Link::Up { .. } => Status::Online,
        }
    }

    /// Its public description, with its requests in flight and the metrics of its last answer.
    pub(crate) fn info(&self, in_flight: u32, metrics: Option<AnswerMetrics>) -> ParticipantInfo {
        let about = self.stored.about.clone();
        let link_seen = self.link_seen.load(Ordering::Relaxed);
        ParticipantInfo {
            id: self.id.clone(),
            nickname: about.nickname,
            model: about.models.first().cloned().unwrap_or_default(),
            endpoint: about.endpoint,
            config: about.config.public(),
            specs: about.specs,
            capabilities: about.capabilities,
            connection: Shown {
                kind: ConnectionKind::Tunnel,
                connected: self.is_up(),
                last_tunnel_seen_at: (link_seen > 0).then_some(link_seen),
            },
            status: self.status(in_flight),
            joined_at: self.stored.joined_at,
            last_seen: self.seen(),
            updated_at: self.stored.updated_at,
            models: about.models,
            max_concurrent: Some(about.max_concurrent),
            metrics,
        }
    }

    /// Its data for the connection that serves it.
    pub(crate) fn served(&self, room_defaults: &RuntimeConfig) -> ServedParticipant {
        let about = self.stored.about.clone();
        ServedParticipant {
            id: self.id.clone(),
            nickname: about.nickname,
            models: about.models,
            kind: about.kind.shown(),
            max_concurrent: about.max_concurrent,
            capabilities: about.capabilities,
            defaults: about.config.or(room_defaults),
        }
    }
}
