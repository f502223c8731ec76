//! Typed client of a Warren.
//!
//! - [`server`]: a server, and what can be asked of it
//! - [`error`]: why it did not answer as it should
//! - `connection`: one request over HTTP or HTTPS, within a deadline

mod connection;
pub mod error;
pub mod server;

pub use error::ClientError;
pub use protocol::admin;
pub use server::Warren;
