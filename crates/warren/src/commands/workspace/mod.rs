//! The common parts of the commands of the workspace.
//!
//! - [`WorkspaceServer`]: which workspace, and what it is shown
//! - [`Output`]: the same, and whether to answer in JSON
//! - [`Machines`]: the names of the machines, in lists for people
//! - [`mod@named`]: which session, project or team is meant
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
