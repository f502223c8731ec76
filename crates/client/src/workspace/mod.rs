//! The workspace of a server: its sessions, projects, files, git and teams.
//!
//! A [`Workspace`] is one connection, owned by its caller: one request at a time, and what the server
//! says meanwhile of its own accord. What is looked at for long is a [`Following`], which connects again
//! by itself and goes on where it was.
//!
//! - [`address`]: where a workspace is, and what it is shown
//! - [`connection`]: one connection; [`answer`]: what a reply means for the caller
//! - `sessions`, `projects`, [`files`], `git`, `teams`: what can be asked, a method each
//! - [`following`]: a session's output and all that belongs to it, over any number of connections
//! - [`place`]: how far that has come, without a socket; [`inputs`]: keys on their way, the same

pub mod address;
pub mod answer;
pub mod connection;
pub mod files;
pub mod following;
mod git;
pub mod inputs;
pub mod place;
mod projects;
mod sessions;
mod teams;

pub use address::Address;
pub use answer::Answer;
pub use connection::{ServerFrame, Workspace};
pub use following::{Following, FollowingSettings};
pub use place::{Ending, SessionPosition, SessionView};
pub use teams::Reported;

#[cfg(test)]
mod tests;
