//! The handlers of requests. `table` says which request each handler gets.
//!
//! - `asker`: the client behind a request
//! - `connection`: the connection itself; `session_input`: input of sessions, which never waits
//! - `make`: creates, lists and ends sessions; `projects`; `files`, `git`: projects' files and
//!   their git repositories; `host`: the machine's directories
//! - `cluster`: the cluster of this machine alone
//!
//! - `teams`: their list; everything else about teams is answered by `workspace_teams::Desk`

pub(super) mod asker;
pub(super) mod cluster;
pub(super) mod connection;
pub(super) mod files;
pub(super) mod git;
pub(super) mod host;
pub(super) mod make;
pub(super) mod projects;
pub(super) mod session_input;
pub(super) mod teams;
