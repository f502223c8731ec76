//! Why something is refused; the texts are meant for the asker.

use uuid::Uuid;

/// Why something was not done. Nothing has changed, then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// There is no such team.
    #[error("there is no team {0}: it was never created, or it has been deleted")]
    NoTeam(Uuid),
    /// The team was deleted while somebody waited for it.
    #[error("the team {0} was deleted while this waited")]
    Deleted(Uuid),
    /// A team of this id is there already.
    #[error("there is a team {0} already")]
    Exists(Uuid),
    /// A session is in one team at most.
    #[error(
        "the session {session} is in the team {team} already: a session is in one team at most"
    )]
    AlreadyMember {
        /// This session.
        session: Uuid,
        /// Where it is.
        team: Uuid,
    },
    /// The session is not in this team.
    #[error("the session {session} is not in the team {team}")]
    NotMember {
        /// This session.
        session: Uuid,
        /// Not in this one.
        team: Uuid,
    },
    /// The leader gives no results, and is not waited for.
    #[error("the session {session} leads the team {team}: only its workers have results")]
    NotAWorker {
        /// This session.
        session: Uuid,
        /// Its team.
        team: Uuid,
    },
    /// The session has ended.
    #[error("the session {0} has ended")]
    Gone(Uuid),
    /// The leader's session has ended.
    #[error("the team {0} is inactive, since its leader's session has ended")]
    Inactive(Uuid),
    /// A message needs somebody else.
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
        /// Which text.
        what: &'static str,
        /// Its length, in bytes.
        len: usize,
        /// The most it may have.
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
        /// This team.
        team: Uuid,
        /// The bound.
        max: usize,
    },
    /// Nothing more fits, and all that is there is still to be read.
    #[error(
        "the inbox of the team {team} is full: {unread} messages wait to be read or delivered; \
         send this again when some have been"
    )]
    InboxFull {
        /// This team.
        team: Uuid,
        /// The bound that is reached.
        unread: usize,
    },
    /// Too many callers wait at once.
    #[error("{max} waits are open at once: try again when one has ended")]
    TooManyWaits {
        /// The bound.
        max: usize,
    },
    /// Too many callers share one wait.
    #[error("{max} callers share the wait {wait} already")]
    TooManyCallers {
        /// This wait.
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
    /// A message cannot have been delivered before those ahead of it.
    #[error("the message {seq} was not offered to the session {session}")]
    NotOffered {
        /// This message.
        seq: u64,
        /// This session.
        session: Uuid,
    },
}
