//! The handlers of requests. `table` says which request each handler gets.
//!
//! - `asker`: the client behind a request
//! - `session_input`: input of sessions, which never waits; `make`: creates and ends sessions
//! - `lists`: lists of sessions, projects and teams
//! - `files`, `git`: projects' files and their git repositories; `host`: the machine's directories
//! - `cluster`: the cluster of this machine alone
//!
//! The table itself has the handlers of one line. Requests about teams are answered by
//! `workspace_teams::Desk`.

pub(super) mod asker;
pub(super) mod cluster;
pub(super) mod files;
pub(super) mod git;
pub(super) mod host;
pub(super) mod lists;
pub(super) mod make;
pub(super) mod session_input;
