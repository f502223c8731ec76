//! Reasons for refusals. Their texts are meant for the caller.

use uuid::Uuid;

/// The reason why a call failed. Nothing has changed in that case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// There is no such team.
    #[error("there is no team {0}: it was never created, or it has been deleted")]
    NoTeam(Uuid),
    /// The team was deleted while a caller waited for it.
    #[error("the team {0} was deleted while this waited")]
    Deleted(Uuid),
    /// A team with this id exists already.
    #[error("there is a team {0} already")]
    Exists(Uuid),
    /// The session is already in a team, and a session is in one team at most.
    #[error(
        "the session {session} is in the team {team} already: a session is in one team at most"
    )]
    AlreadyMember {
        /// The session.
        session: Uuid,
        /// The team that the session is in.
        team: Uuid,
    },
    /// The session is not in this team.
    #[error("the session {session} is not in the team {team}")]
    NotMember {
        /// The session.
        session: Uuid,
        /// The team that the session is not in.
        team: Uuid,
    },
    /// The leader has no results, so nobody can wait for it.
    #[error("the session {session} leads the team {team}: only its workers have results")]
    NotAWorker {
        /// The session.
        session: Uuid,
        /// The team that the session leads.
        team: Uuid,
    },
    /// The session has ended.
    #[error("the session {0} has ended")]
    Gone(Uuid),
    /// The leader's session has ended.
    #[error("the team {0} is inactive, since its leader's session has ended")]
    Inactive(Uuid),
    /// A message's recipient is its sender.
    #[error("the session {0} cannot send a message to itself")]
    ToItself(Uuid),
    /// The leader's message to all workers has no recipient.
    #[error("the team {0} has no workers to send this to: spawn one first")]
    NoWorkers(Uuid),
    /// A text is too long.
    #[error(
        "the {what} has {len} bytes, and {max} are the most: shorten it, or pass a file's path"
    )]
    TooLong {
        /// The name of the text.
        what: &'static str,
        /// Its length, in bytes.
        len: usize,
        /// The longest allowed length, in bytes.
        max: usize,
    },
    /// There are too many teams.
    #[error("there are {max} teams already: delete one first")]
    TooManyTeams {
        /// The bound.
        max: usize,
    },
    /// There are too many team workers.
    #[error("the team {team} has {max} workers already: kill one first")]
    TooManyWorkers {
        /// The team.
        team: Uuid,
        /// The bound.
        max: usize,
    },
    /// The message does not fit, and the messages in the inbox are still to be read or delivered.
    #[error(
        "the inbox of the team {team} is full: {unread} messages wait to be read or delivered; \
         send this again when some have been"
    )]
    InboxFull {
        /// The team.
        team: Uuid,
        /// The number of messages that wait to be read or delivered.
        unread: usize,
    },
    /// Too many waits are open at once.
    #[error("{max} waits are open at once: try again when one has ended")]
    TooManyWaits {
        /// The bound.
        max: usize,
    },
    /// Too many callers share one wait.
    #[error("{max} callers share the wait {wait} already")]
    TooManyCallers {
        /// The wait.
        wait: Uuid,
        /// The bound.
        max: usize,
    },
    /// There is no such wait, or it has ended.
    #[error(
        "there is no wait {0} in this team: it was never made, or newer ones have taken its place; \
         wait again without a wait_id, no result is lost"
    )]
    UnknownWait(Uuid),
    /// The message is not the one that is being delivered: messages are delivered in order.
    #[error("the message {seq} was not offered to the session {session}")]
    NotOffered {
        /// The message.
        seq: u64,
        /// The session.
        session: Uuid,
    },
}
