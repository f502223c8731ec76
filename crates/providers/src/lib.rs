//! Connections of providers, a module for each protocol.
//!
//! A connection joins the scheduler with what it offers, is assigned jobs, and writes their
//! answers into exchanges. It knows nothing of the APIs that ask.
//!
//! - [`model_node`]: bare model nodes (node protocol)
//! - [`relay_worker`]: workers that dial out to the server (relay protocol)

pub mod model_node;
pub mod relay_worker;

pub use model_node::{ModelNodes, Settings as NodeSettings};
pub use relay_worker::{RelayWorkers, Settings as RelaySettings};
