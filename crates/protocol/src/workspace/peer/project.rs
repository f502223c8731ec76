//! Projects between members: `project_upserted`, `project_deleted`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::value::RawValue;

use super::{
    lenient::{self, Zero, any, name, nanos, node, or_default, time},
    object::{BadObject, ObjectText, fields_of, rewrite, text_of},
};
use crate::{
    json,
    workspace::{
        ids::ProjectId,
        limits::{ENV_BYTES_MAX, ENV_MAX},
        project::Project,
    },
};

/// `project_upserted`: a project was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectUpserted {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Without meaning.
    #[serde(default)]
    pub seq: Zero,
    /// The project's present state.
    pub project: ProjectObject,
}

/// `project_deleted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectDeleted {
    /// Without meaning.
    #[serde(default)]
    pub term: Zero,
    /// Without meaning.
    #[serde(default)]
    pub seq: Zero,
    /// Its project id.
    pub project_id: ProjectId,
}

/// A project as members replicate it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectObject {
    /// Its id.
    pub id: ProjectId,
    /// The member that has its files. If the message names none, that is the sender.
    pub owner: Option<String>,
    /// Its name, for people.
    pub name: Option<String>,
    /// When it was made, in nanoseconds since 1970.
    pub created_at: i64,
    /// When it was last changed, in nanoseconds since 1970; 0 if that is unknown.
    pub updated_at: i64,
    /// All its fields, the owner as its `node_id` if known.
    pub text: ObjectText,
}

impl ProjectObject {
    /// This project, owned by this member.
    ///
    /// # Errors
    /// [`BadObject::TooLong`].
    pub fn new(project: &Project, owner: &str) -> Result<Self, BadObject> {
        Ok(Self::from_text(text_of(project)?.as_str())?.owned_by(owner))
    }

    /// A project with the fields in this text, such as an earlier [`ProjectObject::text`].
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

    /// Its description for clients. A field that is missing or of the wrong type in its text gets a
    /// default.
    pub fn project(&self) -> Project {
        let fields: ProjectFields = serde_json::from_str(self.text.as_str()).unwrap_or_default();
        let updated_at = fields.updated_at.or(fields.created_at).unwrap_or_default();
        Project {
            id: self.id,
            name: fields.name.unwrap_or_else(|| self.id.to_string()),
            working_dir: fields.working_dir,
            run_as_user: fields.run_as_user,
            env: fitting(fields.env),
            node_id: self.owner.clone(),
            created_at: fields.created_at.unwrap_or(updated_at),
            updated_at,
        }
    }

    /// Reads a project. `key` is its id if it is the value of a map whose keys are ids.
    pub(super) fn read(text: &str, key: Option<ProjectId>) -> Result<Self, BadObject> {
        let fields: ProjectFields = fields_of(text)?;
        let id = fields.id.or(key).ok_or(BadObject::NoId)?;
        let updated_at = fields.updated_at.or(fields.created_at).unwrap_or_default();
        let created_at = fields.created_at.unwrap_or(updated_at);
        let set = [("id", json::write(&id)), ("created_at", json::write(&created_at))];
        let set = if fields.created_at.is_some() { &set[..1] } else { &set[..] };
        let project = Self {
            id,
            name: fields.name,
            created_at: nanos(created_at),
            updated_at: nanos(updated_at),
            text: rewrite(text, &[], set)?,
            owner: None,
        };
        match fields.node_id.or(fields.owner_node_id) {
            Some(owner) => Ok(project.owned_by(&owner)),
            None if project.text.has_room_for_owner() => Ok(project),
            None => Err(BadObject::TooLong),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ProjectFields {
    #[serde(deserialize_with = "any")]
    id: Option<ProjectId>,
    #[serde(deserialize_with = "name")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient::path")]
    working_dir: String,
    #[serde(deserialize_with = "name")]
    run_as_user: Option<String>,
    #[serde(deserialize_with = "or_default")]
    env: BTreeMap<String, String>,
    #[serde(deserialize_with = "node")]
    node_id: Option<String>,
    #[serde(deserialize_with = "node")]
    owner_node_id: Option<String>,
    #[serde(deserialize_with = "time")]
    created_at: Option<Timestamp>,
    #[serde(deserialize_with = "time")]
    updated_at: Option<Timestamp>,
}

/// The environment, or an empty one if it exceeds the bounds for clients.
fn fitting(env: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let bytes: usize = env.iter().map(|(name, value)| name.len() + value.len()).sum();
    match env.len() <= ENV_MAX && bytes <= ENV_BYTES_MAX {
        true => env,
        false => BTreeMap::new(),
    }
}

impl Serialize for ProjectObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.text.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ProjectObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?;
        Self::read(raw.get(), None).map_err(D::Error::custom)
    }
}
