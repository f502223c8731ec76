//! Clients over pipes, as they would be over sockets.
//!
//! - `kit`: a workspace, and clients of it
//! - `strangers`: connections before they authenticate
//! - `leaving`: what was sent before the end; `large`: messages that are begun and never finished
//! - `rules`: roles, malformed messages, bounds
//! - `uploads`: files that come in parts
//! - `users`: projects of another user
//! - `work`: sessions, projects, files, git, the cluster
//! - `members`: the same through another member of the cluster; `remote_teams`: agents and team workers there
//! - `moves`: agents that move

mod kit;
mod large;
mod leaving;
mod members;
mod moves;
mod remote_teams;
mod rules;
mod strangers;
mod uploads;
mod users;
mod work;
