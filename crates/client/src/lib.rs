//! Typed client of a Warren.
//!
//! - [`server`]: a server, its requests, and how it is stopped
//! - `joining`: how machines join it
//! - [`rooms`]: its rooms
//! - [`mesh`]: its part in the mesh
//! - [`logs`]: its log
//! - [`workspace`]: its sessions, projects, files and teams
//! - [`events`]: streams of events
//! - [`answer`]: reads an answer piece by piece, in either of its two forms
//! - `lines`: an answer that arrives as lines of JSON
//! - [`error`]: why a request failed
//! - `connection`: one request over HTTP or HTTPS, within a deadline

pub mod answer;
mod connection;
pub mod error;
pub mod events;
mod joining;
mod lines;
pub mod logs;
pub mod mesh;
pub mod rooms;
pub mod server;
pub mod workspace;

pub use answer::{AnswerReader, Piece};
pub use error::ClientError;
pub use events::{AnswerEvents, RoomEvents};
pub use logs::{LogQuery, Logging};
pub use mesh::TransferReports;
pub use protocol::{admin, invitation, room};
pub use rooms::{RemovalToken, RoomClient};
pub use server::{StopReports, Warren};
pub use wire::tls::trust_own;
pub use workspace::Workspace;
