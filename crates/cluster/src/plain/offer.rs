//! An object as a plain peer offers it.

use jiff::Timestamp;
use protocol::workspace::{
    SessionId,
    peer::{ObjectText, ProjectObject, SessionObject, TeamObject},
};
use replica::{Key, Kind, Stamp};

/// An object as a plain peer offers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) key: Key,
    /// The owner that the peer names.
    pub(crate) owner: Option<String>,
    pub(crate) version: Offered,
    pub(crate) name: Option<String>,
    /// The leader's session; only of a team.
    pub(crate) leader: Option<SessionId>,
    pub(crate) text: ObjectText,
}

/// The version that a plain peer names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Offered {
    /// The generation of a session.
    Generation(u64),
    /// The time of a project or team.
    Time(Time),
}

/// A time as members compare it: milliseconds since 1970, and the nanoseconds within the
/// millisecond.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    wall_ms: u64,
    nanos: u32,
}

const NANOS_IN_MS: u64 = 1_000_000;

impl Time {
    /// From nanoseconds since 1970. Earlier times count as 1970.
    pub(crate) fn from_nanos(nanos: i64) -> Self {
        let nanos = u64::try_from(nanos).unwrap_or_default();
        // A remainder is below a million.
        Self { wall_ms: nanos / NANOS_IN_MS, nanos: (nanos % NANOS_IN_MS) as u32 }
    }

    pub(crate) fn of(stamp: &Stamp) -> Self {
        Self { wall_ms: stamp.wall_ms, nanos: stamp.counter }
    }

    /// The form that objects contain. A plain peer that compares these orders versions as this
    /// member does.
    pub(crate) fn timestamp(self) -> Timestamp {
        let nanos = i128::from(self.wall_ms) * i128::from(NANOS_IN_MS) + i128::from(self.nanos);
        Timestamp::from_nanosecond(nanos).unwrap_or(Timestamp::MAX)
    }

    /// The stamp of this time, with `node` as its writer.
    pub(crate) fn stamp(self, node: &str) -> Stamp {
        Stamp { wall_ms: self.wall_ms, counter: self.nanos, node: node.into() }
    }
}

impl From<SessionObject> for Offer {
    fn from(session: SessionObject) -> Self {
        Self {
            key: session_key(session.id),
            owner: session.owner,
            version: Offered::Generation(session.generation),
            name: session.name,
            leader: None,
            text: session.text,
        }
    }
}

impl From<ProjectObject> for Offer {
    fn from(project: ProjectObject) -> Self {
        Self {
            key: Key::new(Kind::PROJECT, project.id.to_string()),
            owner: project.owner,
            version: Offered::Time(Time::from_nanos(project.updated_at)),
            name: project.name,
            leader: None,
            text: project.text,
        }
    }
}

impl From<TeamObject> for Offer {
    fn from(team: TeamObject) -> Self {
        Self {
            key: Key::new(Kind::TEAM, team.id.to_string()),
            owner: team.owner,
            version: Offered::Time(Time::from_nanos(team.last_active)),
            name: team.name,
            leader: team.leader,
            text: team.text,
        }
    }
}

/// The key of a session.
pub(crate) fn session_key(id: SessionId) -> Key {
    Key::new(Kind::SESSION, id.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_written_to_the_nanosecond() {
        let time = Time::from_nanos(1_700_000_000_123_456_789);
        assert_eq!(time, Time { wall_ms: 1_700_000_000_123, nanos: 456_789 });
        assert_eq!(time.timestamp().as_nanosecond(), 1_700_000_000_123_456_789);
        assert_eq!(Time::of(&time.stamp("node")), time);
        assert_eq!(Time::from_nanos(-5), Time::default());
    }
}
