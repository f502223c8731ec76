//! Config, roles, telemetry, start and drain: joins the machines to their shells.
//!
//! The only crate that knows both the APIs and the providers, and the only one that decides which
//! path belongs to whom.
//!
//! - [`options`]: settings as they are written: flags, environment, file
//! - [`settings`]: what they mean
//! - [`data`]: the data directory, its lock and its tokens
//! - [`server`]: a running server, from start to drain
//! - `parts`: what it is made of
//! - `remember`: which models are served, over a restart too
//! - [`ledger`]: a row for each job, written off the request path
//! - `keeper`: keys expire, are settled, and remember their last use
//! - [`stopped`]: administration of a server that is not running
//! - [`listener`]: TCP, TLS and HTTP connections
//! - `greeting`, `guard`: which HTTP a client speaks; a deadline for what it does not read
//! - `strict`, `streams`: ambiguous requests; connections that ask for nothing
//! - [`peering`]: its part in the mesh, and the relay
//! - `working`: its workspace: terminals, agents, files and teams
//! - `mdns`: lets the server be found on the local network, if it is told to
//! - `room_keeper`: rooms' watchers are told of jobs, and what nobody uses ends
//! - [`routes`]: which path belongs to whom
//! - `sockets`: whom a WebSocket is for, where several protocols share a path
//! - [`telemetry`]: logs and metrics
//! - [`signals`]: when to stop, and when to stop at once

pub mod data;
mod greeting;
mod guard;
mod keeper;
pub mod ledger;
pub mod listener;
mod mdns;
pub mod options;
mod parts;
pub mod peering;
mod remember;
mod room_keeper;
pub mod routes;
pub mod server;
pub mod settings;
pub mod signals;
mod sockets;
pub mod stopped;
mod streams;
mod strict;
pub mod telemetry;
mod working;

pub use options::{ConfigFile, ServeOptions};
pub use server::Server;
pub use settings::Settings;
pub use stopped::Stopped;

/// The version of this Warren.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
