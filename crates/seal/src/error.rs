//! Why something was refused.

use base::NodeId;
use thiserror::Error;

/// Why a handshake or a record was refused. No variant holds data that was read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SealError {
    /// The id is 64 hex digits, but not a usable key: not a point of the curve, or one of the
    /// points for which every signature and every secret is known.
    #[error("{0} cannot be the id of a node: it is no usable public key")]
    NotAKey(NodeId),
    /// The other end proved a key, but not the one of the node that it should be.
    #[error("the other end is not the node that it says it is: it proved another key")]
    NotThem,
    /// The answer does not open with the passcode: the other end has another one, or is not the
    /// node that was dialled, or the answer was changed on the way.
    #[error("the answer does not open: the other node has another passcode, or is not {}", .0.short())]
    WrongPasscode(NodeId),
    /// It does not open: it was sealed with another key, for another node or another link, or
    /// changed on the way. For a handshake also: only one end used a passcode.
    #[error("what arrived does not open: it was changed on the way, or meant for another link")]
    Unauthentic,
    /// The content is invalid at its position; the key was right.
    #[error("what arrived is malformed: {0}")]
    Malformed(&'static str),
    /// More than is sent or taken in one piece. In bytes.
    #[error("{what} is over its limit of {limit} bytes")]
    TooLarge {
        /// Its name, for people.
        what: &'static str,
        /// How much it may be, in bytes.
        limit: usize,
    },
    /// A record that arrived before arrived again, or after a later one.
    #[error("record {counter} was replayed: {expected} is the earliest that may come")]
    Replayed {
        /// The counter that the record carries.
        counter: u64,
        /// The lowest counter that would be taken.
        expected: u64,
    },
    /// A piece of a payload whose earlier pieces were lost. The payload is lost; the link
    /// continues.
    #[error("a payload arrived without its beginning: pieces of it were lost on the way")]
    Incomplete,
    /// The keys of one handshake are used up. The link has to be opened again.
    #[error("the keys of this link are used up; make the link anew")]
    Exhausted,
    /// An earlier record was refused, so that nothing after it can be trusted.
    #[error("an earlier record of this link was refused; make the link anew")]
    Broken,
    /// The calls of a handshake came in the wrong order.
    #[error("the handshake is not at this step")]
    OutOfTurn,
    /// The system has no random numbers.
    #[error("the operating system gives no random numbers")]
    NoRandomness,
}

impl From<snow::Error> for SealError {
    fn from(error: snow::Error) -> Self {
        match error {
            snow::Error::Decrypt => Self::Unauthentic,
            snow::Error::Rng => Self::NoRandomness,
            snow::Error::Input => Self::Malformed("a handshake message of another length"),
            _ => Self::OutOfTurn,
        }
    }
}
