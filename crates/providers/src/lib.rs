//! Connections of providers, a module for each protocol.
//!
//! A connection joins the scheduler with what it offers, is assigned jobs, and writes their
//! answers into exchanges. It knows nothing of the APIs that ask.
//!
//! - [`model_node`]: bare model nodes (node protocol)
//! - [`participant`]: participants of rooms: stock tunnels, and endpoints that the server calls
//! - [`relay_worker`]: workers that dial out to the server (relay protocol)
//! - `notes`: what the scheduler has decided for a provider, until its task sees it
//! - `unsent`: what of a request is not sent yet
//! - `incoming`: an answer on its way into its exchange
//! - `head`: statuses and headers, checked
//! - `served`: what a provider's backend serves, told or learnt
//! - `member`: a provider's place in a room
//! - `refusal`: jobs that a provider cannot be asked
//! - `complaints`: a provider's nonsense is answered only so often

mod complaints;
mod head;
mod incoming;
mod member;
pub mod model_node;
mod notes;
pub mod participant;
mod refusal;
pub mod relay_worker;
mod served;
mod unsent;

pub use model_node::{ModelNodes, Settings as NodeSettings};
pub use participant::Participants;
pub use relay_worker::{RelayWorkers, Settings as RelaySettings};
