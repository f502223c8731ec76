//! Messages in JSON between two Warrens of a cluster, within their sealed link. The link itself is in the
//! crate `cluster`.
//!
//! - [`message`]: [`SealedMessage`], every message, and its reader
//! - the fields of each, by subject: [`join`], [`moving`]
//! - [`invitation`]: the code by which a machine joins a cluster
//!
//! Both ends are Warrens, so fields are read strictly. A message of an unknown type is ignored.

pub mod invitation;
pub mod join;
pub mod message;
pub mod moving;

pub use invitation::{BadInvitation, Invitation, InviteSecret};
pub use join::{MemberFacts, NewToken, NotInvited, Welcome};
pub use message::{SealedKind, SealedMessage, decode_sealed};
pub use moving::{MoveAnswer, MoveAsk, MoveChunk, MoveFile, MovePrepare, MoveRefused, OfMove};

#[cfg(test)]
mod tests;
