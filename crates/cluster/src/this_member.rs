//! This member, as it introduces itself.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use seal::Identity;

use crate::{
    link::hello::{Hello, VERSION},
    member::{Member, PlainPeer},
    tokens::{TokenKey, book::Tag},
};

/// This member.
pub(crate) struct ThisMember {
    pub(crate) node_id: String,
    /// 64 random bits of this start.
    pub(crate) incarnation: u64,
    pub(crate) identity: Identity,
    shown: Mutex<(String, Vec<String>)>,
    plain: Mutex<Vec<PlainPeer>>,
    token: Mutex<Option<TokenKey>>,
    dials: AtomicU64,
}

impl ThisMember {
    pub(crate) fn new(
        node_id: String,
        identity: Identity,
        name: String,
        addresses: Vec<String>,
    ) -> Self {
        Self {
            node_id,
            incarnation: rand::random(),
            identity,
            shown: Mutex::new((name, addresses)),
            plain: Mutex::default(),
            token: Mutex::default(),
            dials: AtomicU64::new(1),
        }
    }

    /// Its hello for the next handshake. `token` is the tag of the token that it proves.
    pub(crate) fn hello(&self, token: Tag) -> Hello {
        let Member { node_id, name, addresses, .. } = self.member();
        let (incarnation, speaks) = (self.incarnation, (VERSION, VERSION));
        let dial = self.dials.fetch_add(1, Ordering::Relaxed);
        Hello { node_id, incarnation, dial, name, addresses, speaks, token }
    }

    /// Its entry's value.
    pub(crate) fn member(&self) -> Member {
        let (name, addresses) = self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let key = Some(self.identity.node_id());
        let plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Member { node_id: self.node_id.clone(), key, name, addresses, plain }
    }

    /// Sets the plain peers that are linked here.
    pub(crate) fn set_plain(&self, plain: Vec<PlainPeer>) {
        *self.plain.lock().unwrap_or_else(PoisonError::into_inner) = plain;
    }

    pub(crate) fn rename(&self, name: String) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).0 = name;
    }

    /// The secret made from the cluster's token; `None` while there is no token.
    pub(crate) fn token(&self) -> Option<TokenKey> {
        self.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_token(&self, token: TokenKey) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }
}
