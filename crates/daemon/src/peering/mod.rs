//! The server in the mesh, as a node and as a mesh relay, if the settings say so.
//!
//! - `part`: the node
//! - `relay`: the mesh relay at the server's own port
//! - `proofs`: which nodes have answered a challenge of the mesh relay, kept over a restart
//! - [`alone`]: a mesh relay in a process of its own
//! - `routes`: `/admin/mesh`, and `/peers` of the mesh relay
//! - `metrics`: counts of the node and of the mesh relay

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
