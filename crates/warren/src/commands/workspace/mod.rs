//! What the commands of the workspace share.
//!
//! - [`WorkspaceServer`]: which workspace, and what it is shown
//! - [`mod@named`]: which session, project or team is meant
//! - [`terms`]: words for their states and times

mod named;
mod place;
pub(crate) mod terms;

pub(crate) use named::{named, short};
pub(crate) use place::WorkspaceServer;
