//! Faults of messages.

use super::error::{Code, RelayError};

/// The fault of a message. Its text is that of stock relays, where they have one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No JSON.
    #[error("Could not decode relay message")]
    NotJson,
    /// JSON, but not an object that has a key.
    #[error("Empty relay message")]
    Empty,
    /// An unknown message; its name is cut to 64 bytes.
    #[error("Unsupported relay message: {0}")]
    Unsupported(String),
    /// A registration without a node id.
    #[error("Missing nodeID in register payload")]
    NoNodeId,
    /// An unacceptable registration.
    #[error("{0} in register payload is not what it must be")]
    Register(&'static str),
    /// A missing or invalid field.
    #[error("{kind}: {field} is missing, or not what it must be")]
    Field {
        /// The message.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The value under the message's name is no object.
    #[error("{0} has no payload: an object belongs there")]
    NoPayload(&'static str),
    /// A field that appears twice, so that two readers may read two messages.
    #[error("{0}: the same field appears twice")]
    Twice(&'static str),
    /// More fields than any message has.
    #[error("{0} has too many fields")]
    Crowded(&'static str),
}

impl Fault {
    /// Its code.
    pub fn code(&self) -> Code {
        match self {
            Self::NotJson => Code::InvalidJson,
            Self::Unsupported(_) => Code::UnsupportedMessage,
            Self::NoNodeId | Self::Register(_) => Code::InvalidRegister,
            Self::Empty
            | Self::Field { .. }
            | Self::NoPayload(_)
            | Self::Twice(_)
            | Self::Crowded(_) => Code::InvalidMessage,
        }
    }

    /// The error to send to the message's sender.
    pub fn reply(&self) -> RelayError {
        RelayError::new(self.code(), self.to_string())
    }
}
