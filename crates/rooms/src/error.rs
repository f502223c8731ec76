//! The errors of rooms; their texts are for the client.

use std::time::Duration;

use store::StoreError;

/// Why a client may not enter a room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// No room has this code.
    #[error("Room not found")]
    Unknown,
    /// Too many unknown codes or wrong passwords came from this address.
    #[error("too many wrong codes or passwords from your address: try again in {} s", .retry_after.as_secs().max(1))]
    TooMany {
        /// How long to wait before the next attempt.
        retry_after: Duration,
    },
    /// The room has a password, and none was given.
    #[error("this room has a password: send it as `Authorization: Bearer PASSWORD`")]
    PasswordMissing,
    /// The password is wrong.
    #[error("the password is wrong")]
    PasswordWrong,
}

/// Why an operation on a room failed.
#[derive(Debug, thiserror::Error)]
pub enum RoomError {
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// There are too many rooms, or too many participants in this one.
    #[error("{0}")]
    TooMany(String),
    /// No participant has this id.
    #[error("there is no participant {0} in this room")]
    NoParticipant(String),
    /// Another participant is connected under this id.
    #[error("the participant {0} is connected already, from somewhere else: choose another id")]
    Conflict(String),
    /// The token is wrong.
    #[error("{0}")]
    NotAllowed(&'static str),
    /// A tunnel's token is unknown, used or too old.
    #[error("the tunnel token is unknown, used or older than 60 s: join again for a new one")]
    BadTunnelToken,
    /// Another server has taken the room over.
    #[error("another server has taken this room over: try again in a moment")]
    Moved,
    /// The room could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}
