//! Lists of sessions, projects and teams: those of this machine, and those of the other members.

use protocol::workspace::{
    ServerMessage, SessionInfo,
    client::{ListSessions, ProjectList, SessionList, TeamList},
};

use super::asker::{Answer, Asker};
use crate::{others, services::Services};

pub(crate) async fn sessions(asker: &Asker, request: ListSessions) -> Answer {
    let Services { sessions, membership, .. } = &*asker.services;
    let mut sessions = sessions.list(request.include_hidden);
    if let Some(cluster) = membership.cluster() {
        sessions.extend(others::sessions(&cluster, request.include_hidden));
        // Made through this machine a moment ago, before their owners have announced them.
        let fresh = membership.fresh_sessions();
        let is_new = |info: &SessionInfo| sessions.iter().all(|known| known.id != info.id);
        let fresh: Vec<_> = fresh.into_iter().filter(is_new).collect();
        sessions.extend(fresh.into_iter().filter(|info| request.include_hidden || !info.hidden));
    }
    Ok(Some(ServerMessage::SessionList(SessionList { sessions })))
}

pub(crate) async fn projects(asker: &Asker) -> Answer {
    let Services { projects, membership, .. } = &*asker.services;
    let mut projects = projects.list();
    if let Some(cluster) = membership.cluster() {
        projects.extend(others::projects(&cluster));
    }
    Ok(Some(ServerMessage::ProjectList(ProjectList { projects })))
}

pub(crate) async fn teams(asker: &Asker) -> Answer {
    let answer = asker.desk().list().await?;
    let (Some(ServerMessage::TeamList(list)), Some(cluster)) =
        (&answer, asker.services.membership.cluster())
    else {
        return Ok(answer);
    };
    let mut teams = list.teams.clone();
    teams.extend(others::teams(&cluster));
    Ok(Some(ServerMessage::TeamList(TeamList { teams })))
}
