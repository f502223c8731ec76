//! One key.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use base::{JobId, KeyId, KeyLimits, KeyScope, ModelName, ResumeAnswers, RoomId};
use store::{KeyDigest, KeyRecord};
use tokio_util::sync::CancellationToken;

use crate::{
    consumer::Denied,
    limits::{Desk, Limits, OverLimit, Standing},
    moment::Moment,
    prices::Charge,
};

/// A key, and the state of its limits.
pub struct Key {
    record: KeyRecord,
    /// Shared with the key that replaces this one after a change.
    limits: Arc<Limits>,
    /// In seconds since 1970; 0 means never.
    last_used: AtomicU64,
    /// The value of `last_used` that the store has.
    saved_use: AtomicU64,
    /// Cancelled when its connections have to end.
    ended: CancellationToken,
    ready_made: bool,
}

impl Key {
    /// `desk` counts the use of keys that several servers share; `None`: this server counts alone.
    pub(super) fn new(record: KeyRecord, desk: Option<&Desk>, now: Moment) -> Self {
        let limits = Arc::new(match desk {
            Some(desk) => Limits::shared(&record.id, record.limits, desk),
            None => Limits::new(record.limits, now),
        });
        Self::with(record, limits, false)
    }

    pub(super) fn ready_made(
        id: KeyId,
        digest: KeyDigest,
        scopes: &[KeyScope],
        now: Moment,
    ) -> Self {
        let record = KeyRecord {
            name: id.to_string(),
            id,
            digest,
            prefix: String::new(),
            scopes: scopes.to_vec(),
            models: Vec::new(),
            limits: KeyLimits::default(),
            created: now.seconds(),
            expires: None,
            room: None,
            revoked: None,
            last_used: None,
        };
        let limits = Arc::new(Limits::new(KeyLimits::default(), now));
        Self::with(record, limits, true)
    }

    /// The same key for this model only.
    pub(super) fn only_for(mut self, model: &str) -> Self {
        self.record.models = vec![model.to_owned()];
        self
    }

    /// The same key with another record, and the same state of its limits.
    pub(super) fn changed(&self, record: KeyRecord) -> Self {
        Self::with(record, Arc::clone(&self.limits), self.ready_made)
    }

    /// The same key with other limits.
    pub(super) fn limited(&self, record: KeyRecord, now: Moment) -> Self {
        let limits = Arc::new(self.limits.changed(record.limits, now));
        Self::with(record, limits, self.ready_made)
    }

    /// The same key, whose end ends also the connections of this one, unless they have ended already.
    pub(super) fn with_connections_of(self, before: &Self) -> Self {
        match before.ended.is_cancelled() {
            true => self,
            false => Self { ended: before.ended.clone(), ..self },
        }
    }

    fn with(record: KeyRecord, limits: Arc<Limits>, ready_made: bool) -> Self {
        let used = record.last_used.unwrap_or(0);
        let (last_used, saved_use) = (used.into(), used.into());
        let ended = CancellationToken::new();
        Self { record, limits, last_used, saved_use, ended, ready_made }
    }

    /// Its id.
    pub fn id(&self) -> &KeyId {
        &self.record.id
    }

    /// Its record.
    pub fn record(&self) -> KeyRecord {
        let last_used = Some(self.last_used.load(Ordering::Relaxed)).filter(|at| *at > 0);
        KeyRecord { last_used, ..self.record.clone() }
    }

    /// Whether it may be used for this model, by either of the [names](ModelName::with_or_without_latest)
    /// that it may have.
    pub fn allows(&self, model: &str) -> bool {
        let models = &self.record.models;
        let may = |model: &str| models.iter().any(|allowed| matches(allowed, model));
        let other = || ModelName::from(model).with_or_without_latest();
        models.is_empty() || may(model) || other().is_some_and(|other| may(other.as_str()))
    }

    /// Whether its streamed answers are resumed when their provider is lost; `None` if the key does not say.
    pub fn resume_answers(&self) -> Option<ResumeAnswers> {
        self.record.limits.resume_answers
    }

    /// Whether its requests may go to clouds.
    pub fn may_use_clouds(&self) -> bool {
        !self.record.limits.no_cloud
    }

    /// The room that it is bound to.
    pub fn room(&self) -> Option<&RoomId> {
        self.record.room.as_ref()
    }

    /// Admits a job with an estimate of its charge. The job must be settled when it has ended. If other servers hold
    /// what it needs, the call waits until they give it back, a second at most.
    ///
    /// # Errors
    /// [`OverLimit`] when one of the key's limits is used up; then nothing is reserved.
    pub async fn admit(
        &self,
        job: JobId,
        charge: impl Into<Charge>,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        self.limits.admit(job, charge.into(), now).await
    }

    /// Admits a job as [`Key::admit`] does, but without a wait.
    ///
    /// # Errors
    /// [`OverLimit`] when one of the key's limits is used up; then nothing is reserved.
    pub fn reserve(
        &self,
        job: JobId,
        charge: impl Into<Charge>,
        now: Moment,
    ) -> Result<Standing, OverLimit> {
        self.limits.reserve(job, charge.into(), now)
    }

    /// Settles a job with what it used. Settling twice does nothing.
    pub fn settle(&self, job: JobId, used: impl Into<Charge>, now: Moment) {
        self.limits.settle(job, used.into(), now);
    }

    /// Waits until it is revoked, rotated or expired: then its connections have to end.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    pub(super) fn check(&self, scope: KeyScope, now: Moment) -> Result<(), Denied> {
        self.check_valid(now)?;
        if self.has(scope) { Ok(()) } else { Err(Denied::Scope(scope)) }
    }

    /// Checks that it works now, with any scope.
    pub(super) fn check_valid(&self, now: Moment) -> Result<(), Denied> {
        if self.record.revoked.is_some() {
            return Err(Denied::KeyRevoked);
        }
        if self.is_expired(now) { Err(Denied::KeyExpired) } else { Ok(()) }
    }

    pub(super) fn has(&self, scope: KeyScope) -> bool {
        self.record.scopes.contains(&scope)
    }

    pub(super) fn is_valid(&self, now: Moment) -> bool {
        self.check_valid(now).is_ok()
    }

    pub(super) fn is_expired(&self, now: Moment) -> bool {
        self.record.expires.is_some_and(|at| now.seconds() >= at)
    }

    /// Ends its connections. Returns whether this is the first call.
    pub(super) fn end(&self) -> bool {
        let first = !self.ended.is_cancelled();
        self.ended.cancel();
        first
    }

    pub(crate) fn used(&self, now: Moment) {
        let now = now.seconds();
        // Most requests find this second stored already, and do not write the shared cache line.
        if self.last_used.load(Ordering::Relaxed) != now {
            self.last_used.store(now, Ordering::Relaxed);
        }
    }

    /// Notes that another server has used it.
    pub(super) fn was_used(&self, at: Option<u64>) {
        if let Some(at) = at {
            self.last_used.fetch_max(at, Ordering::Relaxed);
            self.saved_use.fetch_max(at, Ordering::Relaxed);
        }
    }

    /// When it was last used, if that is not saved yet.
    pub(super) fn unsaved_use(&self) -> Option<u64> {
        let used = self.last_used.load(Ordering::Relaxed);
        let saved = self.saved_use.load(Ordering::Relaxed);
        (used != saved && !self.ready_made).then_some(used)
    }

    pub(super) fn saved_use(&self, at: u64) {
        self.saved_use.store(at, Ordering::Relaxed);
    }

    pub(super) fn restore(&self, used: Charge, now: Moment) {
        self.limits.restore(used, now);
    }

    pub(super) fn limits(&self) -> &KeyLimits {
        self.limits.limits()
    }

    pub(crate) fn digest(&self) -> &KeyDigest {
        &self.record.digest
    }

    pub(super) fn is_ready_made(&self) -> bool {
        self.ready_made
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.record.id)
    }
}

/// Whether a model has the allowed name, or the beginning before its `*`.
fn matches(allowed: &str, model: &str) -> bool {
    match allowed.strip_suffix('*') {
        Some(beginning) => model.starts_with(beginning),
        None => model == allowed,
    }
}
