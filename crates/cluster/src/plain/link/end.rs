//! Why a link to a plain peer ended.

use std::time::Duration;

use wire::{LinkError, OutboxClosed};

use crate::{driver::WriteError, plain::complaints};

/// Why a link ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlainEnd {
    #[error("it was closed here")]
    ClosedHere,
    #[error("it closed the link")]
    Closed,
    #[error("nothing came from it for {0:?}")]
    Silent(Duration),
    #[error("it read nothing for {0:?}")]
    Deaf(Duration),
    #[error("it sent more than {} messages a minute that cannot be read", complaints::MOST)]
    Unreadable,
    #[error("a member with a key has its node id")]
    Sealed,
    #[error("it fell behind with the objects of the cluster")]
    Behind,
    #[error("{0}")]
    TooMany(String),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Stopping(#[from] WriteError),
}

impl From<OutboxClosed> for PlainEnd {
    fn from(_: OutboxClosed) -> Self {
        Self::Link(LinkError::GivenUp)
    }
}

impl PlainEnd {
    /// The code with which the link is closed.
    pub(super) fn code(&self) -> u16 {
        match self {
            Self::Unreadable | Self::Sealed | Self::TooMany(_) => 1008,
            _ => 1000,
        }
    }
}
