//! Stands in for the settings of the workspace on systems without one.

use std::path::Path;

use anyhow::bail;
use serde_json::Value;

use crate::{options::WorkspaceOptions, workspace_part::NO_WORKSPACE};

/// There are none: `None` in any case.
#[derive(Debug, Clone)]
pub enum WorkspaceSettings {}

/// Refuses a workspace that is asked for by name. Its other settings are not used.
///
/// # Errors
/// When it is asked for.
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

/// Their values: there are none.
pub(crate) fn values(workspace: &WorkspaceSettings) -> Vec<(&'static str, Value)> {
    match *workspace {}
}
