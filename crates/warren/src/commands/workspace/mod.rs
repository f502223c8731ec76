//! The common parts of the commands of the workspace.
//!
//! - [`WorkspaceServer`]: the workspace that a command speaks to, and its credential
//! - [`Output`]: the same, and whether to answer in JSON
//! - [`Machines`]: the names of the machines, in lists for people
//! - [`mod@named`]: finds the session, project or team that is meant
//! - [`terms`]: words for their states and times

pub(crate) mod machines;
mod named;
pub(crate) mod terms;
mod workspace_server;

use clap::Args;

pub(crate) use machines::Machines;
pub(crate) use named::{named, named_on, project, short};
pub(crate) use workspace_server::WorkspaceServer;

// No doc comment: clap would take it for the command's own.
#[derive(Args)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: WorkspaceServer,
}
