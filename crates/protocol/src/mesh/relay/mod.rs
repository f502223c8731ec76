//! Messages between nodes and a relay.
//!
//! One JSON object in one WebSocket message, with one key that names it: `{"discover":{…}}`, or
//! `{"discover":{"_0":{…}}}` as stock peers sometimes write it. Both are read; the flat form is
//! written.
//!
//! - [`to_relay`]: messages that a relay reads: [`ToRelay`]
//! - [`from_relay`]: messages that a node reads: [`FromRelay`]
//! - [`forward`]: messages from one node to another: [`Forward`]
//! - [`register`], [`discover`], [`connect`]: the bodies of messages
//! - [`error`]: errors on the wire: [`RelayError`]
//! - [`fault`]: the faults of a message: [`Fault`]
//! - [`facts`]: the capabilities of a node that a relay reads: [`Facts`]
//! - [`id`]: ids of nodes on a relay: [`RelayNodeId`]

pub mod connect;
pub mod discover;
mod envelope;
pub mod error;
pub mod facts;
pub mod fault;
pub mod forward;
pub mod from_relay;
pub mod id;
mod object;
pub mod register;
mod scan;
#[cfg(test)]
mod tests;
pub mod to_relay;

pub use connect::{Candidate, ConnectionInfo, Offer};
pub use discover::{Discover, DiscoverResponse, Filter, PeerInfo, PeerRecord};
pub use error::{Code, RelayError};
pub use facts::Facts;
pub use fault::Fault;
pub use forward::{Forward, ForwardKind};
pub use from_relay::{FromRelay, Presence, RegisterAck, RegisterChallenge};
pub use id::{NotARelayNodeId, RelayNodeId};
pub use register::Register;
pub use to_relay::ToRelay;

/// The WebSocket subprotocol by which a node asks for a challenge, which it signs as it registers.
pub const SUBPROTOCOL: &str = "warren.mesh.2";

/// The header with which a Warren's relay answers a client that offers [`SUBPROTOCOL`]. Its value is
/// [`SUBPROTOCOL_VERSION`]. The subprotocol in an answer proves nothing: the WebSocket server of stock
/// relays agrees to whatever it is offered first.
pub const SUBPROTOCOL_HEADER: &str = "x-warren-mesh";

/// The value of [`SUBPROTOCOL_HEADER`].
pub const SUBPROTOCOL_VERSION: &str = "2";

/// The longest message, in bytes. A longer one breaks the connection.
pub const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A registration is valid for this many seconds: a node sends something more often than that.
pub const TTL_SECONDS: u64 = 300;

/// The longest `sessionID`, in bytes.
pub const MAX_SESSION_ID: usize = 128;

/// The relay's name in the text that answers a challenge: what a client dialled, as its `Host`
/// header has it, in lower case and without the default port of `http` or `https`.
pub fn relay_host(host: &str) -> String {
    let host = host.trim().to_ascii_lowercase();
    let bare = [":80", ":443"].iter().find_map(|port| host.strip_suffix(port));
    // If the port were cut from an IPv6 address without brackets, another address would remain.
    let bare = bare.filter(|bare| !bare.contains(':') || bare.ends_with(']'));
    bare.map_or_else(|| host.clone(), str::to_owned)
}
