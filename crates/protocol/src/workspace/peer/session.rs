//! Sessions between members: `session_update` (or `session_upserted`), `session_removed`,
//! `session_unknown`.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::value::RawValue;

use super::{
    lenient::{self, Zero, any, count, name, nanos, node, or_default, time},
    object::{BadObject, ObjectText, fields_of, raw, rewrite, rewritten, text_of},
};
use crate::{
    json,
    workspace::{
        ids::{ProjectId, SessionId, TeamId},
        limits::{NAME_MAX, TAGS_MAX},
        session::{DEFAULT_PROVIDER, SessionInfo, SessionKind, SessionMode, SessionStatus},
    },
};

/// `session_update`, also `session_upserted`: a session was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUpdate {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Without meaning.
    #[serde(default)]
    pub seq: Zero,
    /// The session's present state.
    pub session: SessionObject,
}

/// `session_removed`: a session is gone, whatever generation of it the receiver knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRemoved {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Without meaning.
    #[serde(default)]
    pub seq: Zero,
    /// Its session id.
    pub session_id: SessionId,
}

/// A session as members replicate it. Its changes are counted, unlike those of a team or project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionObject {
    /// Its id.
    pub id: SessionId,
    /// The member that runs it. If the message names none, that is the sender.
    pub owner: Option<String>,
    /// The number of its owner's changes.
    pub generation: u64,
    /// Its name, for people.
    pub name: Option<String>,
    /// When it was made, in nanoseconds since 1970.
    pub created_at: i64,
    /// When it last read or wrote anything, in nanoseconds since 1970.
    pub last_active: i64,
    /// The session's description: the fields of `info`, with the owner as `node_id` if known, but
    /// without generation and output.
    pub text: ObjectText,
}

impl SessionObject {
    /// A session of this description, owned by this member.
    ///
    /// # Errors
    /// [`BadObject::TooLong`].
    pub fn new(info: &SessionInfo, owner: &str, generation: u64) -> Result<Self, BadObject> {
        Ok(Self::from_text(text_of(info)?.as_str(), generation)?.owned_by(owner))
    }

    /// A session with the description in this text, such as an earlier [`SessionObject::text`].
    ///
    /// # Errors
    /// [`BadObject`].
    pub fn from_text(text: &str, generation: u64) -> Result<Self, BadObject> {
        Ok(Self { generation, ..Self::read(text, None)? })
    }

    /// The same with its owner set.
    #[must_use]
    pub fn owned_by(self, node: &str) -> Self {
        Self { text: self.text.owned_by(node), owner: Some(node.to_owned()), ..self }
    }

    /// Its description for clients. A field that is missing or of the wrong type in its text gets a
    /// default.
    pub fn info(&self) -> SessionInfo {
        let fields = serde_json::from_str(self.text.as_str()).unwrap_or_default();
        info_of(self, fields)
    }

    /// Reads a session, bare or in `info`. `key` is its id if it is the value of a map whose keys
    /// are ids.
    pub(super) fn read(text: &str, key: Option<SessionId>) -> Result<Self, BadObject> {
        let beside: Beside<'_> = fields_of(text)?;
        let inner = beside.info.map(RawValue::get).filter(|info| info.starts_with('{'));
        let fields: SessionFields = fields_of(inner.unwrap_or(text))?;
        let id = fields.id.or(key).ok_or(BadObject::NoId)?;
        let owner = fields.node_id.or(beside.owner_node_id).or(beside.node_id);
        let owner = owner.or(fields.owner_node_id);
        let times = fields.created_at.or(fields.last_active).unwrap_or_default();
        let session = Self {
            id,
            generation: beside.generation.or(fields.generation).unwrap_or_default(),
            name: fields.name,
            created_at: nanos(times),
            last_active: nanos(fields.last_active.unwrap_or(times)),
            text: rewrite(inner.unwrap_or(text), &BESIDE, &[("id", json::write(&id))])?,
            owner: None,
        };
        match owner {
            Some(owner) => Ok(session.owned_by(&owner)),
            None if session.text.has_room_for_owner() => Ok(session),
            None => Err(BadObject::TooLong),
        }
    }

    /// The session as written in a snapshot: both bare and in `info`, since readers differ in where
    /// they look.
    pub(super) fn in_snapshot(&self) -> Box<RawValue> {
        raw(rewritten(self.text.as_str(), &[], &self.fields_beside(), usize::MAX))
    }

    /// The session as written in an update.
    fn in_update(&self) -> Box<RawValue> {
        raw(rewritten("{}", &[], &self.fields_beside(), usize::MAX))
    }

    /// The fields beside the bare description, under every name that members look for.
    fn fields_beside(&self) -> Vec<(&'static str, String)> {
        let generation = || ("generation", self.generation.to_string());
        let info = rewritten(self.text.as_str(), &[], &[generation()], usize::MAX);
        let mut fields = vec![("info", info.unwrap_or_default()), generation()];
        if let Some(owner) = &self.owner {
            let owner = json::write(owner);
            fields.extend([("owner_node_id", owner.clone()), ("node_id", owner)]);
        }
        fields.push(("output_history", "[]".to_owned()));
        fields
    }
}

/// Fields that are not part of the description.
const BESIDE: [&str; 4] = ["info", "generation", "owner_node_id", "output_history"];

/// The fields beside `info`.
#[derive(Deserialize)]
struct Beside<'a> {
    #[serde(borrow)]
    info: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "count")]
    generation: Option<u64>,
    #[serde(default, deserialize_with = "node")]
    owner_node_id: Option<String>,
    #[serde(default, deserialize_with = "node")]
    node_id: Option<String>,
}

/// The fields of a description.
#[derive(Default, Deserialize)]
#[serde(default)]
struct SessionFields {
    #[serde(deserialize_with = "any")]
    id: Option<SessionId>,
    #[serde(deserialize_with = "name")]
    name: Option<String>,
    #[serde(deserialize_with = "any")]
    mode: Option<SessionMode>,
    #[serde(deserialize_with = "any")]
    status: Option<SessionStatus>,
    #[serde(deserialize_with = "lenient::path")]
    working_dir: String,
    #[serde(deserialize_with = "name")]
    model: Option<String>,
    #[serde(deserialize_with = "time")]
    created_at: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    last_active: Option<Timestamp>,
    #[serde(deserialize_with = "or_default")]
    attached_clients: u32,
    #[serde(deserialize_with = "any")]
    adopted_pid: Option<u32>,
    #[serde(deserialize_with = "any")]
    project_id: Option<ProjectId>,
    #[serde(deserialize_with = "node")]
    node_id: Option<String>,
    #[serde(deserialize_with = "node")]
    owner_node_id: Option<String>,
    #[serde(deserialize_with = "count")]
    generation: Option<u64>,
    #[serde(deserialize_with = "any")]
    kind: Option<SessionKind>,
    #[serde(deserialize_with = "name")]
    provider: Option<String>,
    #[serde(deserialize_with = "or_default")]
    hidden: bool,
    #[serde(deserialize_with = "any")]
    team_id: Option<TeamId>,
    #[serde(deserialize_with = "or_default")]
    is_team_leader: bool,
    #[serde(deserialize_with = "any")]
    reachable: Option<bool>,
    #[serde(deserialize_with = "any")]
    dev_server_port: Option<u16>,
    #[serde(deserialize_with = "any")]
    exit_code: Option<i32>,
    #[serde(deserialize_with = "count")]
    last_seq: Option<u64>,
    #[serde(deserialize_with = "or_default")]
    asks: u32,
    #[serde(deserialize_with = "or_default")]
    tags: Vec<String>,
}

fn info_of(session: &SessionObject, fields: SessionFields) -> SessionInfo {
    let created_at = fields.created_at.or(fields.last_active).unwrap_or_default();
    let kind = fields.kind.unwrap_or_default();
    let mode = match kind {
        SessionKind::Shell { .. } => SessionMode::Pty,
        _ => SessionMode::default(),
    };
    SessionInfo {
        id: session.id,
        name: fields.name,
        mode: fields.mode.unwrap_or(mode),
        status: fields.status.unwrap_or(SessionStatus::Running),
        working_dir: fields.working_dir,
        model: fields.model,
        created_at,
        last_active: fields.last_active.unwrap_or(created_at),
        attached_clients: fields.attached_clients,
        adopted_pid: fields.adopted_pid,
        project_id: fields.project_id,
        node_id: session.owner.clone(),
        kind,
        provider: fields.provider.unwrap_or_else(|| DEFAULT_PROVIDER.to_owned()),
        hidden: fields.hidden,
        team_id: fields.team_id,
        is_team_leader: fields.is_team_leader,
        reachable: fields.reachable.unwrap_or(true),
        dev_server_port: fields.dev_server_port,
        exit_code: fields.exit_code,
        last_seq: fields.last_seq,
        asks: fields.asks,
        tags: shown(fields.tags),
    }
}

fn shown(mut tags: Vec<String>) -> Vec<String> {
    tags.retain(|tag| (1..=NAME_MAX).contains(&tag.len()) && !tag.contains(char::is_control));
    tags.truncate(TAGS_MAX);
    tags
}

impl Serialize for SessionObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.in_update().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SessionObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::read(raw.get(), None).map_err(D::Error::custom)
    }
}
