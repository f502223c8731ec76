//! The workspace: terminals and agents that run on this machine, its projects' files and their
//! git, and teams of agents; for clients that come and go.
//!
//! - [`Workspace`]: the whole, from an HTTP request to a client's link
//! - [`Settings`]: where it keeps things, and its bounds
//! - `socket`: one client: who it is, what it asks, what it is told
//! - `sessions`: what runs, its output and its viewers, kept over restarts
//! - `engine`: what a session does, whatever runs in it: a terminal, an agent, an adopted process
//! - `terminal`, `agents`, `adopted`: the engines
//! - `projects`: working directories, their users and environments; `users`: whom they may be of
//! - `teams`: leaders, team workers and their inboxes
//! - `events`: what all clients are told
//! - `audit`: who did what
//! - `testing`: a workspace for tests

mod adopted;
mod agents;
mod audit;
mod engine;
mod events;
mod projects;
mod refusal;
mod sessions;
mod settings;
mod socket;
mod teams;
mod terminal;
#[cfg(test)]
mod testing;
mod users;
mod work;

pub use settings::{AgentSettings, Gateway, Settings};
pub use work::{Counts, Parts, StartError, Workspace};
