//! Messages between two Warrens of a cluster, inside of their sealed link.
//!
//! - [`opening`]: the first bytes of each end, before the link is sealed
//! - [`frame`]: a frame of the link; [`long`]: streams and long messages, cut and put together
//! - [`message`]: [`SealedMessage`], every message in JSON, and its reader
//! - the fields of each, by subject: [`hello`], [`guest`], [`join`], [`moving`]
//! - [`invitation`]: the code by which a machine joins a cluster
//!
//! Both ends are Warrens, so that fields are read strictly. A message of an unknown type is ignored.

pub mod frame;
pub mod guest;
pub mod hello;
pub mod invitation;
pub mod join;
pub mod long;
pub mod message;
pub mod moving;
pub mod opening;

pub use frame::{BadSealedFrame, Carried, CreditOf, Fragment, SealedFrame};
pub use guest::{
    Caller, CallerMember, GuestEvent, GuestRequest, GuestResponse, OfGuest, Payload, Told,
};
pub use hello::{SealedHello, Speaks};
pub use invitation::{BadInvitation, Invitation, InviteSecret};
pub use join::{Join, MemberFacts, NewToken, NotInvited, Welcome};
pub use long::{BadLong, Whole, fragments};
pub use message::{SealedKind, SealedMessage, decode_sealed};
pub use moving::{MoveAnswer, MoveAsk, MoveChunk, MoveFile, MovePrepare, MoveRefused, OfMove};
pub use opening::{BadOpening, Opening, PskLabel};

#[cfg(test)]
mod tests;
