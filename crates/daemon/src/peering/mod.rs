//! The server in the mesh, as a node and as a relay, if the settings say so.
//!
//! - `part`: the node
//! - `relay`: the relay at the server's own port
//! - `proofs`: which nodes have answered a challenge of the relay, kept over a restart
//! - [`alone`]: a relay in a process of its own
//! - `routes`: `/admin/mesh`, and `/peers` of the relay
//! - `metrics`: counts of both

pub mod alone;
mod metrics;
mod part;
mod proofs;
mod relay;
mod routes;

pub(crate) use self::{
    metrics::encode,
    part::{MeshPart, RunningMesh},
    relay::Relay,
    routes::router,
};
