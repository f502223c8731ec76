//! Clients of this member, served by a plain peer.
//!
//! - [`open`]: a circuit that ends at a plain peer; [`serve`]: one that another member's goes on in
//! - `translation`: a client's messages as those of peers, and back, pure; `requests`: those that a
//!   plain peer serves
//! - `circuit`: the task of one circuit
//! - `router`: takes a peer's messages to the circuits that they are for
//! - `follower`: a session's output on its way to one client

mod circuit;
mod follower;
mod requests;
pub(crate) mod router;
mod translation;

pub(crate) use circuit::{open, serve};
pub(crate) use translation::Hops;
