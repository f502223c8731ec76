//! The command line of the workspace.
//!
//! - `sessions`, `projects`, `teams`: each command, run to its end
//! - `attach`: a session used from a terminal
//! - `cluster`: machines of one workspace
//! - `exits`: how commands fail

mod attach;
mod cluster;
mod exits;
mod projects;
mod sessions;
mod teams;

use super::kit::{TOKEN, WorkspaceHost};
use crate::cli::{Ran, warren};

impl WorkspaceHost {
    /// Runs a command of the workspace against it: `words` are its name, then come its arguments.
    pub(super) async fn cli(&self, words: &[&str], args: &[&str]) -> Ran {
        warren(&[words, &self.access().each_ref().map(String::as_str), args].concat()).await
    }

    /// The arguments that say which server it is.
    fn access(&self) -> [String; 4] {
        ["--server".into(), self.daemon.url(), "--token".into(), TOKEN.into()]
    }
}
