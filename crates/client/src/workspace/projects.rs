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
        let wanted = new.clone();
        self.request(&ClientMessage::CreateProject(new), SOON, |reply| match reply {
            ServerMessage::ProjectSaved(saved) if is_made(&saved.project, &wanted) => {
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

/// Whether this project was made for this request. The answer names no request, and the changes of other
/// clients come as the same message.
fn is_made(project: &Project, new: &CreateProject) -> bool {
    let is_there = match new.working_dir.strip_prefix('~') {
        Some(rest) => project.working_dir.ends_with(rest),
        None => project.working_dir == new.working_dir,
    };
    project.name == new.name && is_there && project.created_at == project.updated_at
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn project(name: &str, dir: &str, changed: &str) -> Project {
        let json = json!({"id": "00000000-0000-4000-8000-000000000001", "name": name,
            "working_dir": dir, "created_at": "2026-11-01T00:00:00Z", "updated_at": changed});
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_project_of_another_client_with_the_same_name_is_not_the_answer() {
        let new = |dir: &str| CreateProject {
            name: "p".to_owned(),
            working_dir: dir.to_owned(),
            ..CreateProject::default()
        };
        let now = "2026-11-01T00:00:00Z";
        let is_made = |project: &Project, dir: &str| is_made(project, &new(dir));
        assert!(is_made(&project("p", "/home/ann/x", now), "/home/ann/x"));
        assert!(is_made(&project("p", "/home/ann/x", now), "~/x"));
        assert!(is_made(&project("p", "/home/ann", now), "~"));
        assert!(!is_made(&project("p", "/srv", now), "/home/ann/x"), "another directory");
        assert!(!is_made(&project("q", "/srv", now), "/srv"), "another name");
        let renamed = project("p", "/srv", "2026-11-02T00:00:00Z");
        assert!(!is_made(&renamed, "/srv"), "an older one that was renamed");
    }
}
