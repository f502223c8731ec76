//! The state of one invitation, and the reasons why no machine can join by it.

use store::{InvitationRecord, StoreError};

use crate::{keys::KeyError, moment::Moment};

/// The state of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvitationState {
    /// A machine may join by it.
    Open,
    /// A machine joined by it, and its key works.
    Joined,
    /// Nobody used it in time.
    Expired,
    /// It was revoked, or the key of its machine was.
    Revoked,
}

/// Why a machine did not join.
#[derive(Debug, thiserror::Error)]
pub enum NotJoined {
    /// No invitation has this secret.
    #[error(
        "this server knows no such invitation: it may have been made by another one, or long ago; \
             `warren invite` on the server's machine makes a new one"
    )]
    Unknown,
    /// Another machine has joined by it, or this one before.
    #[error(
        "this invitation was used already, and is good for one machine: `warren invite` on the server's machine \
             makes another"
    )]
    Used,
    /// The invitation has expired.
    #[error("this invitation has expired: `warren invite` on the server's machine makes a new one")]
    Expired,
    /// It was revoked.
    #[error("this invitation was revoked: ask the server's owner for a new one")]
    Revoked,
    /// The machine's name is not valid.
    #[error("{0}")]
    Name(String),
    /// No key could be made for the machine.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl InvitationState {
    /// The state of an invitation, and of the key of the machine that joined by it.
    pub(super) fn of(record: &InvitationRecord, key_is_valid: bool, now: Moment) -> Self {
        match record {
            InvitationRecord { revoked: Some(_), .. } => Self::Revoked,
            InvitationRecord { used: Some(_), .. } if key_is_valid => Self::Joined,
            InvitationRecord { used: Some(_), .. } => Self::Revoked,
            InvitationRecord { expires, .. } if now.seconds() >= *expires => Self::Expired,
            _ => Self::Open,
        }
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Joined => "joined",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }

    /// Whether a machine may join by it.
    pub fn is_open(self) -> bool {
        self == Self::Open
    }

    /// Whether a machine joined by it, and still may lend.
    pub fn is_joined(self) -> bool {
        self == Self::Joined
    }

    /// Whether it is expired or revoked: no machine can join by it, and none lends by it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Expired | Self::Revoked)
    }
}

/// Whether a machine may join by an invitation now.
pub(super) fn may_join(record: &InvitationRecord, now: Moment) -> Result<(), NotJoined> {
    match record {
        InvitationRecord { revoked: Some(_), .. } => Err(NotJoined::Revoked),
        InvitationRecord { used: Some(_), .. } => Err(NotJoined::Used),
        InvitationRecord { expires, .. } if now.seconds() >= *expires => Err(NotJoined::Expired),
        _ => Ok(()),
    }
}
