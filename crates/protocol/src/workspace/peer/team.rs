//! Teams between members: `team_upserted`, `team_removed` (or `team_deleted`).

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::value::RawValue;

use super::{
    lenient::{Zero, any, name, nanos, node, or_default, time},
    object::{BadObject, ObjectText, fields_of, raw, rewrite, rewritten, text_of},
};
use crate::{
    json,
    workspace::{
        ids::{ProjectId, SessionId, TeamId},
        team::{Team, TeamStatus},
    },
};

/// `team_upserted`: a team was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamUpserted {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Without meaning.
    #[serde(default)]
    pub seq: Zero,
    /// The team's present state.
    pub team: TeamObject,
}

/// `team_removed`, also `team_deleted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamRemoved {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Without meaning.
    #[serde(default)]
    pub seq: Zero,
    /// Its team id.
    pub team_id: TeamId,
}

/// A team as members replicate it. Unlike a session it has a leader, and its changes are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamObject {
    /// Its id.
    pub id: TeamId,
    /// The member that keeps it. If the message names none, that is the member of its leader.
    pub owner: Option<String>,
    /// The leader's session, if it has one.
    pub leader: Option<SessionId>,
    /// Its name, for people.
    pub name: Option<String>,
    /// When it was made, in nanoseconds since 1970.
    pub created_at: i64,
    /// When anything last happened in it, in nanoseconds since 1970; 0 if that is unknown.
    pub last_active: i64,
    /// All its fields, with the owner as `node_id` if known, and its last change as `last_active`
    /// only.
    pub text: ObjectText,
}

impl TeamObject {
    /// This team, kept by this member.
    ///
    /// # Errors
    /// [`BadObject::TooLong`].
    pub fn new(team: &Team, owner: &str) -> Result<Self, BadObject> {
        Ok(Self::from_text(text_of(team)?.as_str())?.owned_by(owner))
    }

    /// A team with the fields in this text, such as an earlier [`TeamObject::text`].
    ///
    /// # Errors
    /// [`BadObject`].
    pub fn from_text(text: &str) -> Result<Self, BadObject> {
        Self::read(text, None)
    }

    /// The same with its owner set.
    #[must_use]
    pub fn owned_by(self, node: &str) -> Self {
        Self { text: self.text.owned_by(node), owner: Some(node.to_owned()), ..self }
    }

    /// Its description for clients, if it has a leader. Any other field that is missing or of the
    /// wrong type in its text gets a default.
    pub fn team(&self) -> Option<Team> {
        let fields: TeamFields = serde_json::from_str(self.text.as_str()).unwrap_or_default();
        let last_active = fields.last_change().unwrap_or_default();
        Some(Team {
            id: self.id,
            name: fields.name.unwrap_or_else(|| self.id.to_string()),
            leader_session_id: self.leader?,
            worker_session_ids: fields.worker_session_ids,
            status: fields.status.unwrap_or(TeamStatus::Active),
            created_at: fields.created_at.unwrap_or(last_active),
            last_active,
            project_id: fields.project_id,
        })
    }

    /// Reads a team. `key` is its id if it is the value of a map whose keys are ids.
    pub(super) fn read(text: &str, key: Option<TeamId>) -> Result<Self, BadObject> {
        let fields: TeamFields = fields_of(text)?;
        let id = fields.id.or(key).ok_or(BadObject::NoId)?;
        let last_active = fields.last_change().unwrap_or_default();
        let set = [("id", json::write(&id)), ("last_active", json::write(&last_active))];
        let team = Self {
            id,
            leader: fields.leader_session_id,
            name: fields.name,
            created_at: nanos(fields.created_at.unwrap_or(last_active)),
            last_active: nanos(last_active),
            text: rewrite(text, &["updated_at"], &set)?,
            owner: None,
        };
        match fields.node_id.or(fields.owner_node_id) {
            Some(owner) => Ok(team.owned_by(&owner)),
            None if team.text.has_room_for_owner() => Ok(team),
            None => Err(BadObject::TooLong),
        }
    }

    /// The team as written in messages. Members look for its last change in `last_active` or in
    /// `updated_at`, so this adds the second field.
    pub(super) fn in_message(&self) -> Box<RawValue> {
        let fields: TeamFields = serde_json::from_str(self.text.as_str()).unwrap_or_default();
        let time = json::write(&fields.last_active);
        raw(rewritten(self.text.as_str(), &[], &[("updated_at", time)], usize::MAX))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TeamFields {
    #[serde(deserialize_with = "any")]
    id: Option<TeamId>,
    #[serde(deserialize_with = "name")]
    name: Option<String>,
    #[serde(deserialize_with = "any")]
    leader_session_id: Option<SessionId>,
    #[serde(deserialize_with = "or_default")]
    worker_session_ids: Vec<SessionId>,
    #[serde(deserialize_with = "any")]
    status: Option<TeamStatus>,
    #[serde(deserialize_with = "time")]
    created_at: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    last_active: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    updated_at: Option<Timestamp>,
    #[serde(deserialize_with = "any")]
    project_id: Option<ProjectId>,
    #[serde(deserialize_with = "node")]
    node_id: Option<String>,
    #[serde(deserialize_with = "node")]
    owner_node_id: Option<String>,
}

impl TeamFields {
    fn last_change(&self) -> Option<Timestamp> {
        self.last_active.max(self.updated_at).or(self.created_at)
    }
}

impl Serialize for TeamObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_message().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TeamObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::read(raw.get(), None).map_err(D::Error::custom)
    }
}
