//! Stock-shaped peers of the mesh in the hands of a test, and a relay as stock ones are.
//!
//! They are written after what real peers do on the wire, faults included, and share no code with
//! the house: their JSON and their frames are written out literally.
//!
//! - [`FakeMac`]: a Mac on the LAN, which knows only the wrapped form
//! - [`FakeMeshNode`]: a node behind a relay, which answers one message after the other
//! - [`FakeGateway`]: a consumer behind a relay, with a relay session for each request
//! - [`FakeStockRelay`]: a relay that checks nothing
//! - [`LanPeer`]: a TCP connection on which a test says whatever it likes
//! - [`Script`]: the only model of a peer, and its answer

mod facts;
mod gateway;
mod key;
mod lan;
mod mac;
mod node;
mod relay;
mod script;
mod socket;
mod strict;
#[cfg(test)]
mod tests;
mod wire;

pub use self::{
    gateway::{FakeGateway, GatewayAnswer, GatewayFailure},
    lan::LanPeer,
    mac::{FakeMac, MacLink},
    node::FakeMeshNode,
    relay::FakeStockRelay,
    script::Script,
};
