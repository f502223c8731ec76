//! A room that a backend is lent to.
//!
//! - `member`: a backend as a member of one room, over all its connections
//! - `plane`: requests to the room's server over HTTP

pub(crate) mod member;
pub(crate) mod plane;

use base::Secret;
use protocol::room::{MachineSpecs, RuntimeConfig, tunnel::close};

/// The identity of a backend in a room. The room's password is the secret of its
/// [`crate::ServerTarget`].
#[derive(Debug, Clone)]
pub struct JoinRoom {
    /// The room's code, in either form.
    pub code: String,
    /// Its id in the room, which it chooses itself. The same id stands for the same participant.
    pub id: String,
    /// Its nickname, for people.
    pub nickname: String,
    /// Its machine.
    pub specs: MachineSpecs,
    /// The default options with which its models generate.
    pub config: RuntimeConfig,
    /// The token that the server gave it when it joined before (see [`crate::Event::Joined`]).
    pub session_token: Option<Secret>,
    /// Whether it stays listed in the room, offline, when the worker ends.
    pub stay: bool,
}

impl JoinRoom {
    /// A participant that tells nothing about its machine, has no defaults, and leaves when the
    /// worker ends.
    pub fn new(
        code: impl Into<String>,
        id: impl Into<String>,
        nickname: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            id: id.into(),
            nickname: nickname.into(),
            specs: MachineSpecs::default(),
            config: RuntimeConfig::default(),
            session_token: None,
            stay: false,
        }
    }
}

/// Why a room is given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GiveUpReason {
    /// There is no room with this code, or no longer.
    #[error("there is no room of this code: it was closed, or the code is another")]
    NoRoom,
    /// The server knows no rooms.
    #[error("the server has no rooms: is it a Warren or a gambi hub?")]
    NoRooms,
    /// The room's password is missing or wrong.
    #[error("the room's password is missing or wrong")]
    Password,
    /// Another connection of the same participant took this one's place.
    #[error(
        "another connection of the same participant took the place of this one: give each its own id"
    )]
    Superseded,
    /// The participant was removed from the room.
    #[error("the participant was removed from the room")]
    Removed,
    /// The room does not accept the participant as it is.
    #[error("the room refused: {0}")]
    Refused(String),
}

/// Close code: the server does not accept this participant.
const POLICY: u16 = 1008;

impl GiveUpReason {
    /// The reason that a close code gives; `None` if the participant may try again.
    pub(crate) fn by_close(code: u16, reason: &str) -> Option<Self> {
        match code {
            code if code == close::SUPERSEDED.0 && reason.contains("superseded") => {
                Some(Self::Superseded)
            }
            POLICY if reason == close::REMOVED.1 => Some(Self::Removed),
            POLICY => Some(Self::Refused(reason.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_unwanted_participant_stays_away() {
        let by = |(code, reason): (u16, &str)| GiveUpReason::by_close(code, reason);
        assert_eq!(by(close::SUPERSEDED), Some(GiveUpReason::Superseded));
        assert_eq!(by(close::REMOVED), Some(GiveUpReason::Removed));
        assert_eq!(by((1008, "taken")), Some(GiveUpReason::Refused("taken".to_owned())));
        for other in [close::CLOSING, close::PING_LAPSE, (1000, "graceful shutdown complete")] {
            assert_eq!(by(other), None, "{other:?}");
        }
    }
}
