//! Connections of providers, a module for each protocol.
//!
//! A connection joins the scheduler with what it offers, is assigned jobs, and writes their
//! answers into exchanges. It knows nothing of the APIs that ask.
//!
//! - [`model_node`]: bare model nodes (node protocol)
//! - [`participant`]: participants of rooms: stock tunnels, and endpoints that the server calls
//! - [`relay_worker`]: workers that dial out to the server (relay protocol)

pub mod model_node;
pub mod participant;
pub mod relay_worker;

pub use model_node::{ModelNodes, Settings as NodeSettings};
pub use participant::Participants;
pub use relay_worker::{RelayWorkers, Settings as RelaySettings};
