//! Connections of providers, a module for each protocol.
//!
//! A connection joins the scheduler with an offer, gets jobs assigned, and writes their answers
//! into exchanges. It does not know which APIs the jobs came from.
//!
//! - [`model_node`]: bare model nodes (node protocol)
//! - [`participant`]: participants of rooms: stock tunnels, and endpoints that the server calls
//! - [`relay_worker`]: workers that dial out to the server (relay protocol)
//! - `link`: the driver of every link, and the two traits that a protocol implements: a codec and a
//!   permit
//! - `notes`: the scheduler's side of a provider: its decisions, queued for the link's task
//! - `jobs`: the jobs of one link
//! - `incoming`: an answer on its way into its exchange
//! - `served`: the endpoints of a provider's backend, announced or learned
//! - `unsent`: the unsent part of a request
//! - `head`: statuses and headers, checked
//! - `member`: a provider as a member of a room
//! - `claims`: names that only one task at a time may hold
//! - `refusal`: jobs that a protocol cannot carry, and links that are refused
//! - `complaints`: limits how often bad frames are logged

mod claims;
mod complaints;
mod head;
mod incoming;
mod jobs;
mod link;
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
