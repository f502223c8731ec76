//! Lends a backend to a stock server of rooms, as a stock participant.
//!
//! Unlike a stock participant, it is persistent: after a failed heartbeat it sends the next one,
//! and it opens a broken tunnel again, with a new token.
//!
//! - `open`: joins the room, and opens the tunnel
//! - `codec`: the protocol on one tunnel
//! - `requests`: the meaning of a server's frames and answers (pure)

mod codec;
mod open;
mod requests;

pub(crate) use codec::TunnelCodec;
pub(crate) use open::open;
