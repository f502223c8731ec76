//! Errors.

use std::time::Duration;

/// Why something could not be announced or looked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// The machine does not give what mDNS needs.
    #[error("mDNS cannot be started on this machine: {reason}")]
    Start {
        /// The system's error.
        reason: String,
    },
    /// A name that does not fit into a label of DNS.
    #[error(
        "{instance:?} cannot be the name of an announced service: 1 to 63 bytes are needed, \
         without control characters"
    )]
    Instance {
        /// The name.
        instance: String,
    },
    /// An announcement that is not well formed.
    #[error("{instance:?} cannot be announced by mDNS: {reason}")]
    Refused {
        /// Its name.
        instance: String,
        /// The fault of the text.
        reason: String,
    },
    /// Something has not left this machine.
    #[error(
        "not everything was announced by mDNS within {within:?}: is there a network with multicast, and \
         UDP port 5353 not taken by a program that does not share it?"
    )]
    Silent {
        /// How long it was waited for.
        within: Duration,
    },
    /// It was stopped meanwhile.
    #[error("it was stopped before it was announced by mDNS")]
    Stopped,
}

impl DiscoveryError {
    pub(crate) fn start(error: &mdns_sd::Error) -> Self {
        Self::Start { reason: error.to_string() }
    }
}
