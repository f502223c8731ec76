//! The objects of other members, for the clients of this one: in lists, and as events.

use std::sync::{Arc, Weak};

use cluster::{Cluster, Watcher};
use protocol::workspace::{
    Project, ProjectId, ServerMessage, SessionId, SessionInfo, Team, TeamId,
    client::{OfProject, OfSession, OfTeam, ProjectSaved, TeamUpdated, WithSession},
};
use replica::{Entry, Key, Kind, NodeId};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use workspace::{Event, Events};

use crate::{admission::Admission, shown_reach::ShownReach};

/// The sessions of other members.
pub(crate) fn sessions(cluster: &Cluster, include_hidden: bool) -> Vec<SessionInfo> {
    let infos = of_others::<SessionInfo>(cluster, Kind::SESSION);
    let infos = infos.filter(|(_, info)| include_hidden || !info.hidden);
    infos.map(|(owner, info)| shown(info, &owner, cluster.is_reachable(&owner))).collect()
}

/// The projects of other members.
pub(crate) fn projects(cluster: &Cluster) -> Vec<Project> {
    let projects = of_others::<Project>(cluster, Kind::PROJECT);
    projects.map(|(owner, project)| Project { node_id: Some(owner), ..project }).collect()
}

/// The teams of other members.
pub(crate) fn teams(cluster: &Cluster) -> Vec<Team> {
    of_others::<Team>(cluster, Kind::TEAM).map(|(_, team)| team).collect()
}

/// The sessions of one member.
pub(crate) fn sessions_of(cluster: &Cluster, node: &str, reachable: bool) -> Vec<SessionInfo> {
    let infos = of_others::<SessionInfo>(cluster, Kind::SESSION);
    let infos = infos.filter(|(owner, _)| owner == node);
    infos.map(|(owner, info)| shown(info, &owner, reachable)).collect()
}

/// A session, if another member runs it.
pub(crate) fn session_of_member(cluster: &Cluster, id: SessionId) -> Option<SessionInfo> {
    let entry = cluster.directory().get(Kind::SESSION, &id.to_string())?;
    let owner = entry.owner.as_str();
    let info = read(&entry).filter(|_| owner != cluster.node_id())?;
    Some(shown(info, owner, cluster.is_reachable(owner)))
}

/// The event that shows the present state of another member's session.
pub(crate) fn session_event(info: SessionInfo) -> Event {
    let only_viewers_of = info.hidden.then_some(info.id);
    let session = Box::new(info);
    let message = ServerMessage::SessionStatusChanged(WithSession { session });
    Event { message, only_viewers_of, team: None }
}

fn of_others<T: DeserializeOwned>(
    cluster: &Cluster,
    kind: Kind,
) -> impl Iterator<Item = (String, T)> {
    let own = cluster.node_id().to_owned();
    let entries = cluster.directory().list(kind).into_iter();
    let entries = entries.filter(move |(_, entry)| entry.owner.as_str() != own);
    // An object that cannot be read comes from a newer Warren, or from another program.
    entries.filter_map(|(_, entry)| Some((entry.owner.as_str().to_owned(), read(&entry)?)))
}

fn read<T: DeserializeOwned>(entry: &Entry) -> Option<T> {
    serde_json::from_str(&entry.value).ok()
}

fn shown(info: SessionInfo, owner: &str, reachable: bool) -> SessionInfo {
    SessionInfo { node_id: Some(owner.to_owned()), reachable, ..info }
}

/// Turns changes of other members' objects into events.
pub(crate) struct OtherObjects {
    pub(crate) node: String,
    pub(crate) admission: Weak<Admission>,
    pub(crate) reach: Arc<ShownReach>,
    pub(crate) events: Events,
    /// Objects of this member that another one changed.
    pub(crate) elsewhere: mpsc::Sender<Key>,
}

impl Watcher for OtherObjects {
    fn changed(&self, key: &Key, before: Option<&Entry>, now: Option<&Entry>) {
        let Some(entry) = now.or(before) else { return };
        // The cluster itself keeps the members' entries.
        if key.kind == Kind::MEMBER {
            return;
        }
        if entry.owner.as_str() == self.node {
            // A full channel is no loss: the next round over all objects finds the change, too.
            let _full = self.elsewhere.try_send(key.clone());
            return;
        }
        let event = match key.kind {
            Kind::SESSION => session(key, before, now, self.reaches(&entry.owner)),
            Kind::PROJECT => project(key, now),
            Kind::TEAM => team(key, now),
            _ => None,
        };
        if let Some(event) = event {
            self.events.send(event);
        }
    }
}

impl OtherObjects {
    /// Whether a member can be reached. Notes that clients are shown this.
    fn reaches(&self, owner: &NodeId) -> bool {
        let admission = self.admission.upgrade();
        let membership = admission.as_ref().map(|admission| &admission.services.membership);
        let cluster = membership.and_then(|membership| membership.cluster());
        let reachable = cluster.is_some_and(|cluster| cluster.is_reachable(owner.as_str()));
        self.reach.shown(owner.as_str(), reachable);
        reachable
    }
}

fn session(
    key: &Key,
    before: Option<&Entry>,
    now: Option<&Entry>,
    reachable: bool,
) -> Option<Event> {
    let was: Option<SessionInfo> = before.and_then(read);
    let Some(entry) = now else {
        let session_id: SessionId = key.id.parse().ok()?;
        let only_viewers_of = was.is_some_and(|info| info.hidden).then_some(session_id);
        let message = ServerMessage::SessionKilled(OfSession { session_id });
        return Some(Event { message, only_viewers_of, team: None });
    };
    let info = shown(read(entry)?, entry.owner.as_str(), reachable);
    // The state before is compared with its former owner, so that a move counts as news.
    let owner = before.map_or(entry, |before| before).owner.as_str();
    let was = was.map(|was| shown(was, owner, reachable));
    let is_news = was.is_none_or(|was| !is_same_but_for_activity(&was, &info));
    is_news.then(|| session_event(info))
}

/// Whether two states differ at most in the time of the last activity and the number of the output.
pub(crate) fn is_same_but_for_activity(one: &SessionInfo, other: &SessionInfo) -> bool {
    let SessionInfo { last_active, last_seq, attached_clients, .. } = *other;
    SessionInfo { last_active, last_seq, attached_clients, ..one.clone() } == *other
}

fn project(key: &Key, now: Option<&Entry>) -> Option<Event> {
    let project_id: ProjectId = key.id.parse().ok()?;
    let message = match now {
        None => ServerMessage::ProjectRemoved(OfProject { project_id }),
        Some(entry) => {
            let node_id = Some(entry.owner.as_str().to_owned());
            let project = Project { node_id, ..read(entry)? };
            ServerMessage::ProjectSaved(ProjectSaved { project })
        }
    };
    Some(Event { message, only_viewers_of: None, team: None })
}

fn team(key: &Key, now: Option<&Entry>) -> Option<Event> {
    let team_id: TeamId = key.id.parse().ok()?;
    let message = match now {
        None => ServerMessage::TeamDeleted(OfTeam { team_id }),
        Some(entry) => ServerMessage::TeamUpdated(TeamUpdated { team: read(entry)? }),
    };
    Some(Event { message, only_viewers_of: None, team: Some(team_id) })
}
