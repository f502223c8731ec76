//! Creates, changes, deletes and lists projects.

use protocol::workspace::{
    ServerMessage,
    client::{CreateProject, OfProject, ProjectList, UpdateProject},
};

use super::asker::{Answer, Asker};
use crate::{others, services::Services};

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
    let Services { projects, membership, .. } = &*asker.services;
    let mut projects = projects.list();
    if let Some(cluster) = membership.cluster() {
        projects.extend(others::projects(&cluster));
    }
    Ok(Some(ServerMessage::ProjectList(ProjectList { projects })))
}
