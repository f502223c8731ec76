//! All objects of a member: `state_snapshot`.

mod reading;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{lenient::Zero, project::ProjectObject, session::SessionObject, team::TeamObject};
use crate::workspace::ids::{ProjectId, SessionId, TeamId};

/// `state_snapshot`: the first message of both ends after the greeting. The receiver merges the
/// objects one by one, so the objects may be split over several snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSnapshot {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// The objects.
    #[serde(default)]
    pub state: State,
}

/// The objects of a snapshot, [`OBJECTS_MAX`](crate::workspace::limits::OBJECTS_MAX) at most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct State {
    /// The sessions.
    pub sessions: Vec<SessionObject>,
    /// The projects.
    pub projects: Vec<ProjectObject>,
    /// The teams.
    pub teams: Vec<TeamObject>,
    /// Sessions that are gone. Read only: the specification leaves their form open.
    pub tombstones: Vec<Tombstone>,
    /// The number of the sender's changes, without meaning to others.
    pub version: u64,
    /// How many objects were left out in reading, because they were unreadable or too many.
    pub skipped: usize,
}

/// A session that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tombstone {
    /// Its id.
    pub session_id: SessionId,
    /// The generation that it covers, if it names one.
    pub generation: Option<u64>,
}

impl StateSnapshot {
    /// Splits the objects over as many snapshots as are needed, at least one, so that none is longer
    /// than `max` bytes. Only a snapshot with a single object may be longer.
    pub fn split(state: State, max: usize) -> Vec<Self> {
        let version = state.version;
        let mut parts = Parts { whole: Vec::new(), last: State::default(), bytes: 0, max, version };
        for session in state.sessions {
            // A session is written twice: bare, and in `info`.
            parts.room(2 * session.text.as_str().len()).sessions.push(session);
        }
        for project in state.projects {
            parts.room(project.text.as_str().len()).projects.push(project);
        }
        for team in state.teams {
            parts.room(team.text.as_str().len()).teams.push(team);
        }
        parts.finish()
    }
}

/// The bytes of an entry of a snapshot beside its object's text: its key, and fields beside it.
const ENTRY: usize = 1024;

struct Parts {
    whole: Vec<StateSnapshot>,
    last: State,
    bytes: usize,
    max: usize,
    version: u64,
}

impl Parts {
    /// Makes room for an object of this length, and returns where to put it.
    fn room(&mut self, length: usize) -> &mut State {
        if self.bytes > 0 && self.bytes + length + 2 * ENTRY > self.max {
            self.end();
        }
        self.bytes += length + ENTRY;
        &mut self.last
    }

    fn end(&mut self) {
        let state = State { version: self.version, ..std::mem::take(&mut self.last) };
        self.whole.push(StateSnapshot { term: Zero, state });
        self.bytes = 0;
    }

    fn finish(mut self) -> Vec<StateSnapshot> {
        if self.bytes > 0 || self.whole.is_empty() {
            self.end();
        }
        self.whole
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sessions = self.sessions.iter().map(|session| (session.id, session.in_snapshot()));
        Written {
            sessions: sessions.collect(),
            projects: self.projects.iter().map(|project| (project.id, project)).collect(),
            teams: self.teams.iter().map(|team| (team.id, team)).collect(),
            version: self.version,
        }
        .serialize(serializer)
    }
}

#[derive(Serialize)]
struct Written<'a> {
    sessions: BTreeMap<SessionId, Box<RawValue>>,
    projects: BTreeMap<ProjectId, &'a ProjectObject>,
    teams: BTreeMap<TeamId, &'a TeamObject>,
    version: u64,
}
