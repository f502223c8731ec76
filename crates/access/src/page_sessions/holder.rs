//! Whom a session of the page stands for.

use base::KeyId;
use store::{KeyDigest, PageSessionRecord};

use crate::keys::Key;

/// A key or the server's owner, with the hash of the key's or the administrator's token's text when the session was
/// made. Once that text has changed, the session no longer works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub(super) key: Option<KeyId>,
    pub(super) digest: KeyDigest,
}

impl Holder {
    pub(crate) fn of_key(key: &Key) -> Self {
        Self { key: Some(key.id().clone()), digest: *key.digest() }
    }

    pub(super) const fn owner(token: KeyDigest) -> Self {
        Self { key: None, digest: token }
    }

    pub(super) fn of(record: &PageSessionRecord) -> Self {
        Self { key: record.key.clone(), digest: record.holder }
    }

    /// The key; `None` for the server's owner.
    pub const fn key(&self) -> Option<&KeyId> {
        self.key.as_ref()
    }

    pub(crate) const fn digest(&self) -> KeyDigest {
        self.digest
    }
}
