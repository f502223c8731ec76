//! This server among its peers: it takes part in the mesh, and is a relay for others, if it is told
//! to.
//!
//! - `part`: what its part in the mesh is made of
//! - `relay`: the relay at the server's own port
//! - `proofs`: which nodes of the relay have answered a challenge, over a restart too
//! - [`alone`]: a relay that is nothing else
//! - `routes`: `/admin/mesh`, and who is at the relay
//! - `metrics`: what there is to count

pub mod alone;
mod metrics;
mod part;
mod proofs;
mod relay;
mod routes;

pub(crate) use self::{metrics::encode, part::Part, relay::Relay, routes::router};
