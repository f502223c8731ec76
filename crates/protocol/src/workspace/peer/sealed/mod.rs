//! Messages between two Warrens of a cluster that are written out here, inside of their sealed link. What
//! the link itself is made of is the crate `cluster`'s own.
//!
//! - [`message`]: [`SealedMessage`], every message, and its reader
//! - the fields of each, by subject: [`join`], [`moving`]
//! - [`invitation`]: the code by which a machine joins a cluster
//!
//! Both ends are Warrens, so that fields are read strictly. A message of an unknown type is ignored.

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
