//! The state that signing in at the page needs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use access::{LockOut, LockOutSettings};
use protocol::invitation::ServerId;

use super::cookie::SessionCookie;

/// The state that signing in needs.
pub(crate) struct Web {
    pub(crate) cookie: SessionCookie,
    lock_out: Mutex<LockOut>,
}

impl Web {
    pub(crate) fn new(server: ServerId) -> Self {
        let lock_out = Mutex::new(LockOut::new(LockOutSettings::default()));
        Self { cookie: SessionCookie::of(server), lock_out }
    }

    /// Counts wrong tokens and codes by address, and locks out addresses with too many.
    pub(super) fn lock_out(&self) -> MutexGuard<'_, LockOut> {
        self.lock_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
