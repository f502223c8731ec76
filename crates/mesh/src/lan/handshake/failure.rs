//! Why no link came about.

use base::NodeId;
use seal::SealError;

use crate::lan::{frames::Broken, limits::Full};

use super::GREETED_WITHIN;

/// Why no link came about.
#[derive(Debug, thiserror::Error)]
pub(in crate::lan) enum Failure {
    /// No machine answered at the address.
    #[error("nobody answered within 5 s")]
    NoAnswer,
    /// Its name has no address.
    #[error("{0} cannot be found: {1}")]
    Name(String, String),
    /// This node is stopping.
    #[error("this node stops")]
    Stopping,
    /// There is no room for another link.
    #[error(transparent)]
    Full(#[from] Full),
    /// It sent nothing.
    #[error("it did not say hello within {} s", GREETED_WITHIN.as_secs())]
    Silent,
    /// It greeted, and did not complete the handshake.
    #[error("it did not complete the handshake within {} s", GREETED_WITHIN.as_secs())]
    Unfinished,
    /// It sent several other messages instead of a hello.
    #[error("it sent other things than a hello")]
    NoHello,
    /// It closed the connection instead of answering a hello.
    #[error(
        "it closed the connection on our hello, as stock peers do with another passcode or none"
    )]
    ClosedOnHello,
    /// It refused the link, with this reason.
    #[error("it refused: {0}")]
    Refused(String),
    /// The other end is this same process.
    #[error("the link leads back to this process")]
    Myself,
    /// The other end proved this node's own key.
    #[error(
        "the other end has the same key as this node: two machines cannot be one node. Move \
         `mesh.key` away on one of them"
    )]
    SameKey,
    /// Another node answers there.
    #[error("node {} answers where {} was expected", found.short(), expected.short())]
    NotThem {
        /// The expected node.
        expected: NodeId,
        /// The node that answered.
        found: NodeId,
    },
    /// One node has a passcode and the other has none.
    #[error("one of the two nodes has a passcode (--mesh-passcode), and the other has none")]
    OneHasNone,
    /// A stock peer has another passcode, as its hash shows.
    #[error("its passcode is another one")]
    OtherPasscode,
    /// It cannot seal links, and this node requires it.
    #[error("it cannot seal links, and --require-sealed is set")]
    Unsealed,
    /// It sealed its link before, and now greets as a peer that cannot.
    #[error(
        "it spoke as a peer that cannot seal links, but node {} can: somebody may be in between",
        .0.short()
    )]
    Downgrade(NodeId),
    /// A stock peer has not said who it is.
    #[error("its hello has no `deviceInfo.id` to know it by")]
    Nameless,
    /// The handshake of the sealed form failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The connection failed.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Failure {
    /// Whether people should see it when it happens to an accepted connection. Nonsense, and
    /// connections that break off, may come from anyone, for example from a port scanner.
    pub(in crate::lan) fn is_about_peer(&self) -> bool {
        !matches!(
            self,
            Self::NoAnswer
                | Self::Stopping
                | Self::Full(_)
                | Self::Silent
                | Self::Unfinished
                | Self::NoHello
                | Self::ClosedOnHello
                | Self::Myself
                | Self::Nameless
                | Self::Broken(_)
        )
    }

    /// The reason in words for the other end. `None` if that end knows it already, or cannot get it.
    pub(super) fn for_peer(&self) -> Option<String> {
        match self {
            Self::ClosedOnHello | Self::Refused(_) | Self::Myself => None,
            Self::Broken(Broken::TooLong(_)) => Some(self.to_string()),
            Self::Broken(_) => None,
            _ => Some(self.to_string()),
        }
    }
}
