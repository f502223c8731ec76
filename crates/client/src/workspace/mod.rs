//! The workspace of a server: its sessions, projects, files, git and teams.
//!
//! A [`Workspace`] is one connection, owned by its caller. It carries one request at a time, and
//! the messages that the server sends on its own. A [`Follower`] follows a session for a long
//! time: it reconnects by itself and goes on where it was.
//!
//! - [`address`]: the addresses of a workspace, and the token for each
//! - [`connection`]: one connection; `early_frames`: what comes before an answer;
//!   `connect_errors`: why no server could be used;
//!   [`answer`]: what a reply means for the caller
//! - `sessions`, `projects`, [`files`], `teams`, `cluster`: a method for each request
//! - [`download`]: a file that is fetched while others may change it, without a socket
//! - [`follower`]: a session's output and all that belongs to it, over any number of connections
//! - [`position`]: the position in a session; `joined_events`: an agent's events, stored and live;
//!   [`inputs`]: keys on their way; all without a socket

pub mod address;
pub mod answer;
mod cluster;
mod connect_errors;
pub mod connection;
pub mod download;
mod early_frames;
pub mod files;
pub mod follower;
pub mod inputs;
mod joined_events;
pub mod position;
mod projects;
mod sessions;
mod teams;

pub use address::{Address, Addresses};
pub use answer::Answer;
pub use connection::{ServerFrame, Workspace};
pub use download::{ChangedFile, Download};
pub use follower::{Follower, FollowerSettings};
pub use position::{Ending, SessionPosition, SessionView};
pub use teams::TeamReport;

#[cfg(test)]
mod tests;
