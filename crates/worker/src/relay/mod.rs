//! Lends a backend over the relay protocol: many jobs at once on one link.
//!
//! - `codec`: the protocol on one link
//! - `requests`: the meaning of a server's messages (pure)

mod codec;
mod model_changes;
mod requests;

pub(crate) use codec::RelayCodec;
