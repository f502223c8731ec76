//! The state of a relay, for the administrator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How this machine is doing at a relay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct RelayStatus {
    /// Where it is, without credentials.
    pub(crate) url: String,
    /// Its host, for people.
    pub(crate) host: Arc<str>,
    /// Since when it is connected, in milliseconds since 1970; `None`: it is not.
    pub(crate) connected_since_ms: Option<u64>,
    /// Whether this machine is registered there.
    pub(crate) registered: bool,
    /// Whether the registration cannot be replayed: the relay asked for an answer of its own.
    pub(crate) challenged: bool,
    /// Peers that it lists.
    pub(crate) listed: usize,
    /// Sessions through it.
    pub(crate) sessions: usize,
    /// The last error.
    pub(crate) last_error: Option<String>,
    /// A problem that a person has to solve, such as another machine with the same key.
    pub(crate) problem: Option<String>,
}

/// A [`RelayStatus`] that changes.
#[derive(Debug)]
pub(super) struct LiveStatus(Mutex<RelayStatus>);

impl LiveStatus {
    pub(super) fn new(url: String, host: Arc<str>) -> Self {
        Self(Mutex::new(RelayStatus { url, host, ..RelayStatus::default() }))
    }

    pub(super) fn get(&self) -> RelayStatus {
        self.lock().clone()
    }

    /// Whether this machine is registered there.
    pub(super) fn is_registered(&self) -> bool {
        self.lock().registered
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut RelayStatus)) {
        change(&mut self.lock());
    }

    /// The connection has ended, or did not come about.
    pub(super) fn down(&self, why: &str) {
        self.set(|status| {
            status.connected_since_ms = None;
            (status.registered, status.challenged) = (false, false);
            (status.listed, status.sessions) = (0, 0);
            status.last_error = Some(why.to_owned());
        });
    }

    fn lock(&self) -> MutexGuard<'_, RelayStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
