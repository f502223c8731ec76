//! Plain peers: members that speak only the specification's peer protocol, JSON in the clear. They
//! take no part in replication: this member adopts what they say, within their rights.
//!
//! - `greeting`: `peer_hello` and its answer, for both ends
//! - `peers`: the plain peers that are linked here, or were
//! - `link`: accepts links, and drives one; `complaints`: bounds the messages that cannot be read
//! - `offer`: an object as a plain peer offers it; `rights`: the decision about an offer, pure;
//!   `merge`: carries the decisions out
//! - `inbound`: requests of its clients, served here; `outbound`: clients of this member, served by a
//!   plain peer
//! - `news`: when objects are sent to a plain peer, pure; `saying`: objects as messages

mod complaints;
pub(crate) mod greeting;
pub(crate) mod inbound;
pub(crate) mod link;
mod merge;
mod news;
mod offer;
pub(crate) mod outbound;
pub(crate) mod peers;
mod rights;
mod saying;

#[cfg(test)]
mod tests;
