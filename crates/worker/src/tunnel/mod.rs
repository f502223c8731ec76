//! Lends a backend to a stock server of rooms, as a stock participant.
//!
//! Unlike a stock participant it stays: a heartbeat that fails is followed by the next one, and a
//! tunnel that broke is opened again, with a new token.
//!
//! - `open`: joining, and the tunnel
//! - `codec`: the protocol on one tunnel
//! - `requests`: what a server's frames and answers mean (pure)

mod codec;
mod open;
mod requests;

pub(crate) use codec::TunnelCodec;
pub(crate) use open::open;
