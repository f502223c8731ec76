//! The parts that signing in at the page needs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use access::{LockOut, LockOutSettings};
use protocol::invitation::ServerId;

use super::cookie::SessionCookie;

/// The parts that signing in needs.
pub(crate) struct Web {
    pub(crate) cookie: SessionCookie,
    lock_out: Mutex<LockOut>,
}

impl Web {
    pub(crate) fn new(server: ServerId) -> Self {
        let lock_out = Mutex::new(LockOut::new(LockOutSettings::default()));
        Self { cookie: SessionCookie::of(server), lock_out }
    }

    /// Addresses with too many wrong tokens and codes.
    pub(super) fn lock_out(&self) -> MutexGuard<'_, LockOut> {
        self.lock_out.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
