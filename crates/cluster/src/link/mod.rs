//! Links to other members.
//!
//! - `frame`: the frames between two Warrens
//! - `hello`: how a member introduces itself
//! - `handshake`: proves the token and the keys, and seals the link
//! - `carrier`: the transport under a link
//! - `sealed`: drives a link between two Warrens
//! - `tie`: which of two links between two members stays
//! - `accept`, `dial`: links that other members open, and those that this member opens; `dials`: a
//!   task for each target

pub(crate) mod accept;
pub(crate) mod carrier;
pub(crate) mod dial;
pub(crate) mod dials;
pub(crate) mod frame;
pub(crate) mod handshake;
pub(crate) mod hello;
pub(crate) mod sealed;
pub(crate) mod tie;
