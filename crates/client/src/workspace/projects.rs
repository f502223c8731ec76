//! Projects: finding, making, changing and forgetting them; the changes that git sees in them.

use std::time::Duration;

use protocol::workspace::{
    ClientMessage, GitStatus, Project, ProjectId, ServerMessage,
    client::{CreateProject, GitDiff, OfProject, UpdateProject},
};

use super::{answer::Answer, connection::Workspace, sessions::SOON};
use crate::error::ClientError;

/// The deadline of a request: repositories can be large, and requests for git run one after the
/// other.
const GIT: Duration = Duration::from_secs(120);

impl Workspace {
    /// The projects.
    ///
    /// # Errors
    /// As [`Workspace::request`]; this holds for all methods below, too.
    pub async fn projects(&mut self) -> Result<Vec<Project>, ClientError> {
        self.request(&ClientMessage::ListProjects, SOON, |reply| match reply {
            ServerMessage::ProjectList(list) => Answer::Is(list.projects),
            other => other.into(),
        })
        .await
    }

    /// Creates a project.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn create_project(&mut self, new: CreateProject) -> Result<Project, ClientError> {
        let name = new.name.clone();
        self.request(&ClientMessage::CreateProject(new), SOON, |reply| match reply {
            ServerMessage::ProjectSaved(saved) if saved.project.name == name => {
                Answer::Is(saved.project)
            }
            other => other.into(),
        })
        .await
    }

    /// Changes a project.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such project.
    pub async fn update_project(&mut self, change: UpdateProject) -> Result<Project, ClientError> {
        let id = change.project_id;
        self.request(&ClientMessage::UpdateProject(change), SOON, |reply| match reply {
            ServerMessage::ProjectSaved(saved) if saved.project.id == id => {
                Answer::Is(saved.project)
            }
            other => other.into(),
        })
        .await
    }

    /// Forgets a project; its files stay.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] when there is no such project.
    pub async fn delete_project(&mut self, project_id: ProjectId) -> Result<(), ClientError> {
        let request = ClientMessage::DeleteProject(OfProject { project_id });
        self.request(&request, SOON, |reply| match reply {
            ServerMessage::ProjectRemoved(of) if of.project_id == project_id => Answer::Is(()),
            other => other.into(),
        })
        .await
    }

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
