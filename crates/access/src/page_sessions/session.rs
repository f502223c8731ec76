//! One session of the page.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use base::PageSessionId;
use store::{KeyDigest, PageSessionRecord};
use subtle::ConstantTimeEq;
use tokio_util::sync::CancellationToken;

use super::Holder;
use crate::{credential::digest, moment::Moment};

/// A session of the page.
pub struct PageSession {
    id: PageSessionId,
    record: PageSessionRecord,
    /// In seconds since 1970; 0 means never.
    last_used: AtomicU64,
    /// The value of `last_used` that the store has.
    saved_use: AtomicU64,
    /// Cancelled when its connections have to end.
    ended: CancellationToken,
}

impl PageSession {
    pub(super) fn new(record: PageSessionRecord) -> Self {
        let used = record.last_used.unwrap_or(0);
        let (last_used, saved_use) = (used.into(), used.into());
        let id = PageSessionId::from(record.id.as_str());
        Self { id, record, last_used, saved_use, ended: CancellationToken::new() }
    }

    /// Its id, by which it is listed and revoked. It is no credential.
    pub const fn id(&self) -> &PageSessionId {
        &self.id
    }

    /// Waits until it is revoked, signed out, expired or displaced by a newer one: then its connections have to end.
    /// It does not wait for the end of its holder's key.
    pub async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whom it stands for.
    pub fn holder(&self) -> Holder {
        Holder::of(&self.record)
    }

    /// Its record.
    pub fn record(&self) -> PageSessionRecord {
        let last_used = Some(self.last_used.load(Ordering::Relaxed)).filter(|at| *at > 0);
        PageSessionRecord { last_used, ..self.record.clone() }
    }

    /// Notes that it is used.
    pub(crate) fn used(&self, now: Moment) {
        self.last_used.store(now.seconds(), Ordering::Relaxed);
    }

    /// Ends its connections. Returns whether this is the first call.
    pub(super) fn end(&self) -> bool {
        let first = !self.ended.is_cancelled();
        self.ended.cancel();
        first
    }

    pub(super) fn digest(&self) -> &KeyDigest {
        &self.record.digest
    }

    /// The map of sessions does not compare digests in constant time. This does.
    pub(super) fn has_text(&self, text: &str) -> bool {
        self.record.digest.0.ct_eq(&digest(text).0).into()
    }

    pub(super) fn is_expired(&self, now: Moment) -> bool {
        now.seconds() >= self.record.expires
    }

    /// The order of the sessions, the oldest first.
    pub(super) fn age(&self) -> (u64, &str) {
        (self.record.created, &self.record.id)
    }

    /// When it was last used, if that is not saved yet.
    pub(super) fn unsaved_use(&self) -> Option<u64> {
        let used = self.last_used.load(Ordering::Relaxed);
        (used != self.saved_use.load(Ordering::Relaxed)).then_some(used)
    }

    pub(super) fn saved_use(&self, at: u64) {
        self.saved_use.store(at, Ordering::Relaxed);
    }
}

impl fmt::Debug for PageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageSession({})", self.record.id)
    }
}
