//! Projects: making, changing and removing them. None of this is in the specification.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{env, maybe_empty_name, maybe_env, maybe_name, maybe_path, name, path},
    ids::ProjectId,
    project::Project,
};

/// `create_project`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateProject {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Its directory.
    #[serde(deserialize_with = "path")]
    pub working_dir: String,
    /// The user its sessions run as.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<String>,
    /// Variables of its sessions' environment.
    #[serde(default, deserialize_with = "env", skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// `update_project`: the fields of [`CreateProject`], of which absent ones stay unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateProject {
    /// Its project id.
    pub project_id: ProjectId,
    /// Its name.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its directory.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The user its sessions run as; empty: the daemon's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(default, deserialize_with = "maybe_empty_name")]
    pub run_as_user: Option<String>,
    /// All variables of its sessions' environment; replaces the present ones.
    #[serde(default, deserialize_with = "maybe_env", skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
}

/// A message about one project with no other field: `delete_project`, `git_status`,
/// `watch_project_files`, `unwatch_project_files`; `project_removed`, `project_files_changed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfProject {
    /// Its project id.
    pub project_id: ProjectId,
}

/// `project_saved`: a project was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectSaved {
    /// The project's present state.
    pub project: Project,
}

/// `project_list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectList {
    /// The projects.
    pub projects: Vec<Project>,
}
