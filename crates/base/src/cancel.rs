//! The reasons for which a job is cancelled at its provider.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The reason in a cancellation (relay protocol, walkthrough 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelReason {
    /// The client has left.
    ClientDisconnect,
    /// The job exceeded its time limit.
    Timeout,
    /// The provider's drain is over.
    GracefulShutdown,
    /// The provider's link is closing.
    WorkerDisconnect,
    /// The job lost its provider too often.
    RequeueExhausted,
    /// The server stops.
    ServerShutdown,
}

impl CancelReason {
    /// Its word, as it is on the wire and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClientDisconnect => "client_disconnect",
            Self::Timeout => "timeout",
            Self::GracefulShutdown => "graceful_shutdown",
            Self::WorkerDisconnect => "worker_disconnect",
            Self::RequeueExhausted => "requeue_exhausted",
            Self::ServerShutdown => "server_shutdown",
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
