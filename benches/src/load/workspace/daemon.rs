//! A daemon whose sessions are measured.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::proc;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Daemon {
    pub(crate) addr: SocketAddr,
    pub(crate) token: String,
    pub(crate) pid: u32,
    /// The member of its cluster on which terminals are opened through it; `None`: itself.
    pub(crate) node: Option<String>,
}

impl Daemon {
    /// Its processes: itself, and its helpers, but nothing that runs in a session.
    pub(super) fn pids(&self) -> Vec<u32> {
        [self.pid].into_iter().chain(proc::children(self.pid)).collect()
    }
}

/// The longest wait for anything that is read.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

#[expect(clippy::disallowed_methods, reason = "the loads have threads of their own")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
