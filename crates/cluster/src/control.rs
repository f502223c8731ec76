//! The messages between two Warrens that belong neither to the replica nor to a circuit's frames.
//! They are JSON, since each is rare.

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
        /// Whether the other end has acknowledged or sent anything. If so, and the other end does
        /// not know the circuit, it must not begin the circuit again.
        #[serde(default)]
        begun: bool,
        /// The service at its far end.
        #[serde(default, skip_serializing_if = "Service::is_workspace")]
        service: Service,
        /// The plain peer to which it goes on; `None` if it ends at the member.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// Ends a circuit.
    CircuitClosed {
        /// Its number.
        channel: u32,
        /// Whether the opener is to end its side.
        to_opener: bool,
        /// The reason, for people.
        #[serde(default)]
        reason: String,
    },
    /// The invited machine is now a member.
    Welcome(Welcome),
    /// The invited machine is not a member; the message says why.
    NotInvited(NotInvited),
    /// The cluster has another token from now on.
    NewToken(NewToken),
    /// A message of a newer Warren, which is ignored.
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
