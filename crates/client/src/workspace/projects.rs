//! Projects: finding, making, changing and forgetting them.

use protocol::workspace::{
    ClientMessage, Project, ProjectId, ServerMessage,
    client::{CreateProject, OfProject, UpdateProject},
};

use super::{answer::Answer, connection::Workspace, sessions::SOON};
use crate::error::ClientError;

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
}
