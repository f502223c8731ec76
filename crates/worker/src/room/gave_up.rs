//! Why a room is given up.

use protocol::room::tunnel::close;

/// Why a room is given up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GiveUpReason {
    /// There is no room of this code, or no longer.
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
    /// The room does not take the participant as it is.
    #[error("the room refused: {0}")]
    Refused(String),
}

/// Close code: the server does not want this participant.
const POLICY: u16 = 1008;

impl GiveUpReason {
    /// The reason that a close code gives, if it makes coming back useless.
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
    fn only_who_is_not_wanted_stays_away() {
        let by = |(code, reason): (u16, &str)| GiveUpReason::by_close(code, reason);
        assert_eq!(by(close::SUPERSEDED), Some(GiveUpReason::Superseded));
        assert_eq!(by(close::REMOVED), Some(GiveUpReason::Removed));
        assert_eq!(by((1008, "taken")), Some(GiveUpReason::Refused("taken".to_owned())));
        for other in [close::CLOSING, close::PING_LAPSE, (1000, "graceful shutdown complete")] {
            assert_eq!(by(other), None, "{other:?}");
        }
    }
}
