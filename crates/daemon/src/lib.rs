//! Config, roles, telemetry, start and drain: joins the machines to their shells.
//!
//! The only crate that knows both the APIs and the providers, and the only one that decides which
//! path belongs to whom.
//!
//! - [`options`]: settings as they are written: flags, environment, file
//! - [`settings`]: what they mean
//! - [`data`]: the data directory, its lock and its tokens
//! - [`server`]: a running server, from start to drain
//! - [`listener`]: TCP, TLS and HTTP connections
//! - `greeting`, `guard`: which HTTP a client speaks; a deadline for what it does not read
//! - [`routes`]: which path belongs to whom
//! - [`telemetry`]: logs and metrics
//! - [`signals`]: when to stop, and when to stop at once

pub mod data;
mod greeting;
mod guard;
pub mod listener;
pub mod options;
pub mod routes;
pub mod server;
pub mod settings;
pub mod signals;
pub mod telemetry;

pub use options::{ConfigFile, ServeOptions};
pub use server::Server;
pub use settings::Settings;

/// The version of this Warren.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
