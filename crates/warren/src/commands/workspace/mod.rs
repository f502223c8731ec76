//! What the commands of the workspace share.
//!
//! - [`WorkspaceServer`]: which workspace, and what it is shown
//! - [`Output`]: the same, and whether to answer in JSON
//! - [`mod@named`]: which session, project or team is meant
//! - [`terms`]: words for their states and times

mod named;
mod place;
pub(crate) mod terms;

use clap::Args;

pub(crate) use named::{named, short};
pub(crate) use place::WorkspaceServer;

// No doc comment: clap would take it for the command's own.
#[derive(Args)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: WorkspaceServer,
}
