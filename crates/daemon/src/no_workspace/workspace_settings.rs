//! Stands in for the settings of the workspace on systems without one.

use std::path::Path;

use anyhow::bail;
use serde_json::Value;

use crate::{options::WorkspaceOptions, workspace_part::NO_WORKSPACE};

/// Settings of a workspace. It has no values, so a server's settings always have `None`.
#[derive(Debug, Clone)]
pub enum WorkspaceSettings {}

/// Refuses a workspace that the settings ask for. The other settings of the workspace are ignored.
///
/// # Errors
/// When the settings ask for a workspace.
pub(crate) fn settings(
    options: WorkspaceOptions,
    _data_dir: &Path,
) -> anyhow::Result<Option<WorkspaceSettings>> {
    if options.enabled == Some(true) {
        bail!(
            "--workspace is set, and {NO_WORKSPACE}: leave it out, or run the server on Linux or macOS"
        );
    }
    Ok(None)
}

/// The values of the settings, of which there are none.
pub(crate) fn values(workspace: &WorkspaceSettings) -> Vec<(&'static str, Value)> {
    match *workspace {}
}
