//! Configuration, telemetry, start and drain: puts a server together.
//!
//! This is the only crate that knows both the APIs and the providers, and the only one that decides which
//! part answers which path.
//!
//! - [`options`]: settings as they are written in flags, environment and file
//! - [`settings`]: their values, with the defaults
//! - [`configuration`]: the settings as a running server shows them, and where each is from
//! - [`backup`]: a server's data in one file, and back
//! - [`data`]: the data directory, its lock and its tokens
//! - [`running`]: where the running server of a data directory is
//! - [`server`]: a running server, from start to drain
//! - `parts`: builds its parts from the settings
//! - `known_models`: which models were served, kept over a restart
//! - `ledger`: a row for each job, written off the request path
//! - `response_keeper`: deletes old responses and conversations
//! - `health`: the state that `/health` reports
//! - `own_jobs`: the observers that count jobs, with the cost of each
//! - `key_keeper`: expiry, settlement and last use of keys; `rounds`: when the keepers look for something to do
//! - [`offline`]: administration of a server that is not running
//! - `listener`: TCP, TLS and HTTP connections
//! - `clear_text`: clients that speak HTTP in clear to a port of TLS, or TLS to a port without it
//! - `greeting`: which version of HTTP a client speaks; `client_stream`: a deadline for clients that do not read
//! - `strict`: ambiguous requests; `streams`: HTTP/2 connections without requests
//! - [`peering`]: the mesh and the relay
//! - `workspace_part`: the workspace, started when it is needed; `cluster_part`: this machine as a member
//!   of a cluster; `cluster_models`: the models of members for the sessions of others
//! - `workspace_settings`: the workspace's settings; `no_workspace/` has stand-ins of the same names for systems
//!   without a workspace
//! - `announcement`: announces the server on the local network, by mDNS; `whereabouts`: its addresses, for invitations
//! - `room_keeper`: events of jobs for rooms; the end of unused rooms
//! - [`reload`]: the configuration, read again while the server runs
//! - `routes`: which part answers which path
//! - `json_lines`: answers of one JSON object a line
//! - `sockets`: which part gets a WebSocket on the shared path
//! - `system`: what differs between systems
//! - [`telemetry`]: logs and metrics
//! - [`signals`]: SIGTERM, SIGINT and SIGHUP
//! - `stopping`: the end of a running server, and the fate of its terminals and agents

mod announcement;
pub mod backup;
mod clear_text;
mod client_stream;
#[cfg_attr(not(unix), path = "no_workspace/cluster_models.rs")]
mod cluster_models;
#[cfg_attr(not(unix), path = "no_workspace/cluster_part.rs")]
mod cluster_part;
pub mod configuration;
pub mod data;
mod fleet_part;
mod greeting;
mod health;
mod json_lines;
mod key_keeper;
mod known_models;
mod ledger;
mod listener;
pub mod offline;
pub mod options;
mod own_jobs;
mod parts;
pub mod peering;
pub mod reload;
mod response_keeper;
#[cfg(feature = "nats")]
mod room_homes;
mod room_keeper;
mod rounds;
mod routes;
pub mod running;
pub mod server;
pub mod settings;
pub mod signals;
mod sockets;
mod stopping;
mod storage;
mod stores;
mod streams;
mod strict;
mod system;
pub mod telemetry;
mod whereabouts;
#[cfg_attr(not(unix), path = "no_workspace/workspace_part.rs")]
mod workspace_part;
#[cfg_attr(not(unix), path = "no_workspace/workspace_settings.rs")]
mod workspace_settings;

pub use fleet_part::examination as nats;
pub use offline::OfflineServer;
pub use options::{ConfigFile, ServeOptions};
pub use parts::{SecretSource, SecretSources};
pub use running::ServerFile;
pub use server::Server;
pub use settings::Settings;
pub use stopping::{RunningSessions, SessionsFate};
pub use stores::database;

/// The version of this Warren.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
