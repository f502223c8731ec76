//! Clients of this member, served by a plain peer.
//!
//! - [`open`]: a circuit that ends at a plain peer; [`serve`]: continues another member's circuit
//!   to one
//! - `translation`: puts a client's messages into the peers' protocol, and answers back, pure;
//!   `requests`: the requests that a plain peer serves
//! - `circuit`: the task of one circuit
//! - `router`: passes a peer's messages to the circuits that wait for them
//! - `follower`: a session's output on its way to one client

mod circuit;
mod follower;
mod requests;
pub(crate) mod router;
mod translation;

pub(crate) use circuit::{open, serve};
pub(crate) use translation::Hops;
