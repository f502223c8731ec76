//! Peers: found, linked, asked and answered.
//!
//! A [`Mesh`] runs beside a server. Peers that it finds on the local network or at a mesh relay
//! become providers of the server's scheduler, and requests of peers become jobs. Models pass
//! between peers as files.
//!
//! - [`settings`]: the settings of a mesh
//! - [`node`]: this machine among its peers: what runs, and where each message goes
//! - `this_machine`: what all parts know of this machine, and what it counts
//! - `catalog`: the full lists of the models that peers pass on
//! - `facts`: the facts that this machine sends about itself
//! - `greeting`: the hello within a handshake
//! - [`peer`]: one peer; all of them are [`peer::Peers`]
//! - `link`: one way to a peer, over the LAN or through a mesh relay
//! - `liveness`: heartbeats, and when a link is degraded, gone or idle
//! - `lan`: links over TCP on the local network
//! - `wan`: links through mesh relays, and the direct ones that take their place
//! - `provider`: this server's jobs that peers answer
//! - `inbound`: requests of peers that this machine answers
//! - [`share`]: which peers may ask, when, and how much
//! - [`transfer`]: models that are fetched from peers, and sent to them
//! - [`parcels`]: bytes that another part of the program sends to the same part of a peer's program
//! - [`admin`]: the administrator's view

pub mod admin;
mod catalog;
mod facts;
mod greeting;
mod inbound;
mod lan;
mod link;
mod liveness;
pub mod node;
pub mod parcels;
pub mod peer;
mod provider;
pub mod settings;
pub mod share;
#[cfg(test)]
mod testing;
mod this_machine;
pub mod transfer;
mod wan;

pub use node::Mesh;
pub use peer::PeerId;
pub use settings::Settings;
