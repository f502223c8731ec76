//! Creates, changes, deletes and lists projects.

use protocol::workspace::{
    ServerMessage,
    client::{CreateProject, OfProject, ProjectList, UpdateProject},
};

use super::asker::{Answer, Asker};

pub(crate) async fn create(asker: &Asker, asked: CreateProject) -> Answer {
    asker.services.projects.create(&asker.me.who, asked).await.map(Some)
}

pub(crate) async fn update(asker: &Asker, asked: UpdateProject) -> Answer {
    asker.services.projects.update(&asker.me.who, asked).await.map(Some)
}

pub(crate) async fn delete(asker: &Asker, asked: OfProject) -> Answer {
    asker.services.projects.delete(&asker.me.who, asked).await.map(Some)
}

pub(crate) async fn list(asker: &Asker) -> Answer {
    let projects = asker.services.projects.list();
    Ok(Some(ServerMessage::ProjectList(ProjectList { projects })))
}
