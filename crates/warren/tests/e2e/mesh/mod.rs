//! The mesh: real processes as peers of each other, and stock-shaped peers among them, from the command
//! line, over HTTP, on the LAN and through relays.
//!
//! - `kit`: machines and what they see
//! - `inference`: questions to a Warren
//! - `routes`: how far a request goes, and how much peers may have
//! - `trust`: who is linked to
//! - `faults`: what is lost, and found again
//! - `stock_lan`, `stock_relay`: stock peers on the LAN and behind relays
//! - `hostile`: peers that do harm
//! - `models`: models that are passed on
//! - `namespaces`: machines with a network of their own each
//! - `commands`, `relay`, `settings`, and `servers`, which they share: `warren mesh`, a relay, what may be set

mod commands;
mod faults;
mod hostile;
mod inference;
mod kit;
mod models;
mod namespaces;
mod relay;
mod routes;
pub(crate) mod servers;
mod settings;
mod stock_lan;
mod stock_relay;
mod trust;
