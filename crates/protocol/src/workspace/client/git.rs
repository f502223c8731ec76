//! Git's view of a project.

use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{or_default, text},
    ids::ProjectId,
    limits::PATH_MAX,
};

/// `git_diff`: what changed in one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDiff {
    /// The project.
    pub project_id: ProjectId,
    /// Which file.
    #[serde(deserialize_with = "text::<_, PATH_MAX>")]
    pub path: String,
    /// Whether to report staged changes instead of unstaged ones.
    #[serde(default, deserialize_with = "or_default")]
    pub staged: bool,
}

/// `git_diff_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitDiffResult {
    /// The project.
    pub project_id: ProjectId,
    /// Which file.
    pub path: String,
    /// Whether it holds staged changes.
    pub staged: bool,
    /// A unified diff.
    pub patch: String,
}

/// `git_error`: git could not be run, or has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitError {
    /// The project.
    pub project_id: ProjectId,
    /// Why, for people.
    pub message: String,
}

/// `git_status_result`: a project's working tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitStatus {
    /// The project.
    pub project_id: ProjectId,
    /// Whether it is in a repository. If not, the other fields are empty.
    pub is_repo: bool,
    /// The branch; none when the head is detached.
    pub branch: Option<String>,
    /// The branch that it follows.
    pub upstream: Option<String>,
    /// How many commits it has that its upstream lacks.
    pub ahead: u64,
    /// How many commits its upstream has that it lacks.
    pub behind: u64,
    /// The changes in the index.
    pub staged: Vec<GitChange>,
    /// The changes outside the index, conflicts included.
    pub unstaged: Vec<GitChange>,
    /// Files that git does not know.
    pub untracked: Vec<String>,
}

impl GitStatus {
    /// The error for a project without a repository.
    pub fn no_repository(project_id: ProjectId) -> Self {
        Self {
            project_id,
            is_repo: false,
            branch: None,
            upstream: None,
            ahead: 0,
            behind: 0,
            staged: Vec::new(),
            unstaged: Vec::new(),
            untracked: Vec::new(),
        }
    }
}

/// A file that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitChange {
    /// Which, from the project's directory on.
    pub path: String,
    /// Its status.
    pub status: ChangeStatus,
    /// Its former name, or the source of a copy. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// How a file changed: one of git's letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ChangeStatus {
    /// Its content changed.
    #[serde(rename = "M")]
    Modified,
    /// It is new.
    #[serde(rename = "A")]
    Added,
    /// It was deleted.
    #[serde(rename = "D")]
    Deleted,
    /// It has another name.
    #[serde(rename = "R")]
    Renamed,
    /// It is a copy.
    #[serde(rename = "C")]
    Copied,
    /// Its type changed: it was a link and is a file, for example.
    #[serde(rename = "T")]
    TypeChanged,
    /// It has a conflict that must be merged.
    #[serde(rename = "U")]
    Unmerged,
}
