//! The messages between two Warrens that are neither of the replica nor of a circuit. They are
//! JSON, since each is rare.

use protocol::workspace::peer::sealed::{NewToken, NotInvited, Welcome};
use serde::{Deserialize, Serialize};
use wire::Utf8Bytes;

use crate::circuit::{Caller, Service};

/// A message inside a sealed link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Control {
    /// A sign of life, and the first message of the end that opened the link.
    Ready,
    /// Opens a circuit, or says over a new link that it is still open.
    CircuitOpen {
        /// Its number, the opener's choice.
        channel: u32,
        /// The client.
        caller: Caller,
        /// Whether the other end has acknowledged anything: if it does not know the circuit, it
        /// must not begin again.
        #[serde(default)]
        begun: bool,
        /// The service at its far end.
        #[serde(default, skip_serializing_if = "Service::is_workspace")]
        service: Service,
        /// The plain peer that it goes on to; none: it ends at the member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// Ends a circuit.
    CircuitClosed {
        /// Its number.
        channel: u32,
        /// Whether the opener is to end its side.
        to_opener: bool,
        /// For people.
        #[serde(default)]
        reason: String,
    },
    /// The machine that was invited is a member.
    Welcome(Welcome),
    /// It is not.
    NotInvited(NotInvited),
    /// The cluster has another token from now on.
    NewToken(NewToken),
    /// A message of a newer Warren.
    #[serde(other)]
    Unknown,
}

impl Control {
    pub(crate) fn encode(&self) -> Utf8Bytes {
        // Fields of numbers, text and flags are always JSON.
        serde_json::to_string(self).unwrap_or_default().into()
    }

    pub(crate) fn decode(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
