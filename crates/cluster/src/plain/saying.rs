//! Objects as messages of the peers' protocol.

use std::sync::Arc;

use protocol::workspace::peer::{
    PeerMessage, ProjectDeleted, ProjectObject, ProjectUpserted, SessionObject, SessionRemoved,
    SessionUpdate, State, StateSnapshot, TeamObject, TeamRemoved, TeamUpserted, Zero,
};
use replica::{Entry, Key, Kind, Version};
use wire::Frame;

use super::{offer::Time, rights::owners_generation};
use crate::directory::Directory;

/// The longest part of a snapshot, in bytes. A snapshot may consist of several parts.
const PART: usize = 8 * 1024 * 1024;

/// All objects as messages for a plain peer, except its own sessions, which it knows best.
pub(crate) fn snapshot(directory: &Directory, peer: &str) -> Vec<Frame> {
    let mut state = State::default();
    for (_, entry) in directory.list(Kind::SESSION) {
        if entry.owner.as_str() != peer {
            state.sessions.extend(session(&entry));
        }
    }
    let list = |kind| directory.list(kind).into_iter().map(|(_, entry)| entry);
    state.projects.extend(list(Kind::PROJECT).filter_map(|entry| project(&entry)));
    state.teams.extend(list(Kind::TEAM).filter_map(|entry| team(&entry)));
    let parts = StateSnapshot::split(state, PART).into_iter();
    parts.map(|part| Frame::from(PeerMessage::StateSnapshot(part).encode())).collect()
}

/// The messages that say what an object is now; with `None`, that it is gone. No messages for an
/// object whose text cannot be read.
pub(crate) fn messages(key: &Key, entry: Option<&Arc<Entry>>) -> Vec<String> {
    let message = match entry {
        Some(entry) => update(key.kind, entry),
        None => removal(key),
    };
    message.map(|message| message.spellings()).unwrap_or_default()
}

fn update(kind: Kind, entry: &Entry) -> Option<PeerMessage> {
    let (term, seq) = (Zero, Zero);
    Some(match kind {
        Kind::SESSION => {
            PeerMessage::SessionUpdate(SessionUpdate { term, seq, session: session(entry)? })
        }
        Kind::PROJECT => {
            PeerMessage::ProjectUpserted(ProjectUpserted { term, seq, project: project(entry)? })
        }
        Kind::TEAM => PeerMessage::TeamUpserted(TeamUpserted { term, seq, team: team(entry)? }),
        _ => return None,
    })
}

fn removal(key: &Key) -> Option<PeerMessage> {
    let (term, seq, id) = (Zero, Zero, &key.id);
    Some(match key.kind {
        Kind::SESSION => {
            PeerMessage::SessionRemoved(SessionRemoved { term, seq, session_id: id.parse().ok()? })
        }
        Kind::PROJECT => {
            PeerMessage::ProjectDeleted(ProjectDeleted { term, seq, project_id: id.parse().ok()? })
        }
        Kind::TEAM => {
            PeerMessage::TeamRemoved(TeamRemoved { term, seq, team_id: id.parse().ok()? })
        }
        _ => return None,
    })
}

/// The session of an entry.
pub(crate) fn session(entry: &Entry) -> Option<SessionObject> {
    let session = SessionObject::from_text(&entry.value, owners_generation(entry)).ok()?;
    Some(session.owned_by(entry.owner.as_str()))
}

fn project(entry: &Entry) -> Option<ProjectObject> {
    let project = ProjectObject::from_text(&entry.value).ok()?.owned_by(entry.owner.as_str());
    let text = project.text.with("updated_at", &time(entry)?.timestamp()).ok()?;
    Some(ProjectObject { text, ..project })
}

fn team(entry: &Entry) -> Option<TeamObject> {
    let team = TeamObject::from_text(&entry.value).ok()?.owned_by(entry.owner.as_str());
    let text = team.text.with("last_active", &time(entry)?.timestamp()).ok()?;
    Some(TeamObject { text, ..team })
}

fn time(entry: &Entry) -> Option<Time> {
    match &entry.rank.version {
        Version::Stamp(stamp) => Some(Time::of(stamp)),
        Version::Generation(_) => None,
    }
}
