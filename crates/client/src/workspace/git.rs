//! Requests about the git repository of a project.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, GitStatus, ProjectId, ServerMessage,
    client::{GitDiff, OfProject},
};

use super::{answer::Answer, connection::Workspace};
use crate::error::ClientError;

/// The deadline of a request: repositories can be large, and requests for git run one after the
/// other.
const GIT: Duration = Duration::from_secs(120);

impl Workspace {
    /// The changes in a project since the last commit.
    ///
    /// # Errors
    /// As [`Workspace::request`]; [`ClientError::Declined`] when git cannot be asked.
    pub async fn git_status(&mut self, project_id: ProjectId) -> Result<GitStatus, ClientError> {
        let request = ClientMessage::GitStatus(OfProject { project_id });
        self.request(&request, GIT, |reply| match reply {
            ServerMessage::GitStatusResult(status) if status.project_id == project_id => {
                Answer::Is(status)
            }
            ServerMessage::GitError(error) if error.project_id == project_id => {
                Answer::No(error.message)
            }
            other => other.into(),
        })
        .await
    }

    /// The changes in one file, as a unified diff; with `staged`, those that the next commit holds.
    ///
    /// # Errors
    /// As [`Workspace::git_status`].
    pub async fn git_diff(
        &mut self,
        project_id: ProjectId,
        path: &str,
        staged: bool,
    ) -> Result<String, ClientError> {
        let request = GitDiff { project_id, path: path.to_owned(), staged };
        self.request(&ClientMessage::GitDiff(request), GIT, |reply| match reply {
            ServerMessage::GitDiffResult(diff) if diff.project_id == project_id => {
                Answer::Is(diff.patch)
            }
            ServerMessage::GitError(error) if error.project_id == project_id => {
                Answer::No(error.message)
            }
            other => other.into(),
        })
        .await
    }
}
