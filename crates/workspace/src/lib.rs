//! The workspace: terminals and agents that run on this machine, its projects' files and their
//! git, and teams of agents; for clients that come and go.
//!
//! - [`Workspace`]: the whole, put together in `work`; [`Counts`]: its figures
//! - [`Settings`]: its directory and its bounds
//! - `socket`: connections of clients and their requests; `identity`: a client's name and role;
//!   `member_tokens`: the tokens by which agents prove their membership in a team
//! - `sessions`: sessions, their output and their viewers, kept over restarts
//! - `engine`: the interface of all engines; `engines`: starts the engine of a session; `host`: the
//!   parts of the workspace that engines use; `command`: a command line
//! - `terminal`, `agents`, `adopted`: the engines
//! - `projects`: working directories, their users and environments; `users`: the users
//! - `teams`: leaders, team workers and their inboxes
//! - `events`: messages to all clients
//! - `audit`: the audit log; `refusal`: why a request is refused
//! - `testing`: a workspace for tests

mod adopted;
mod agents;
mod audit;
mod command;
mod counts;
mod engine;
mod engines;
mod events;
mod host;
mod identity;
mod member_tokens;
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

pub use counts::Counts;
pub use settings::{AgentSettings, Gateway, Settings};
pub use work::{Parts, StartError, Workspace};
