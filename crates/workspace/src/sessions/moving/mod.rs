//! A session that moves to another machine of the cluster: what goes along, and what is stored of the
//! move at both ends. The decisions are made by `replica::handover`.
//!
//! - `leaving`: the machine from which the session moves away; `arriving`: the machine to which it moves
//! - `conversation`: where agents keep their conversations; `staging`: the files that wait until the session is taken
//! - `landing`: whether and where an agent could continue here

mod arriving;
mod conversation;
mod landing;
mod leaving;
mod staging;
#[cfg(test)]
mod tests;

use protocol::workspace::SessionId;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use store::{Change, Fact};

pub(crate) use self::conversation::dashed;
pub use self::{
    arriving::VolatileState,
    landing::{Landing, LandingRequest},
    leaving::{Parcel, ParcelFile, Portable},
    staging::{Manifest, ManifestFile, Staging},
};

/// The kind of the stored facts about sessions that have left, by the session's id.
pub const DEPARTURE: &str = "departure";
/// The kind of the stored facts about sessions that move here, by the session's id.
pub const ARRIVAL: &str = "arrival";

/// The beginning of the name of a file of the session's history.
const HISTORY: &str = "history/";
/// The beginning of the name of a file with events of its turns.
const TURNS: &str = "turns/";
/// The beginning of the name of the file with its conversation.
const CONVERSATION: &str = "conversation/";
/// The most bytes of a conversation that goes along, and the most bytes of the history with the events of turns.
const LONGEST: u64 = protocol::workspace::limits::MOVED_BYTES_MAX / 2;

/// A session that has left, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepartureRecord {
    /// The session.
    pub session_id: SessionId,
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// The member that it went to: its node id.
    pub to: String,
}

impl DepartureRecord {
    /// The stored form.
    pub fn json(&self) -> String {
        json(self)
    }
}

/// A session that moves here, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArrivalRecord {
    /// The session.
    pub session_id: SessionId,
    /// The move.
    #[serde(rename = "move")]
    pub move_id: u64,
    /// How often the session has moved, this time included.
    pub moves: u64,
    /// The member that it comes from: its node id.
    pub from: String,
    /// How far the move is.
    pub state: ArrivalState,
}

/// How far a move is at the machine to which the session moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalState {
    /// All files that go along are staged.
    Staged,
    /// The session runs here.
    Taken,
    /// The session will not run here by this move.
    Refused,
}

/// Why a session could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// The staged files are missing or damaged.
    #[error("what was staged is lost: {0}")]
    Lost(String),
    /// The session could not be put in its place now. Another attempt may succeed.
    #[error("{0}")]
    Failed(String),
}

fn json(record: &impl Serialize) -> String {
    // Numbers and text are always JSON.
    serde_json::to_string(record).unwrap_or_default()
}

fn keep(kind: &str, id: SessionId, json: String) -> Change {
    Change::Keep(Fact { kind: kind.to_owned(), id: id.to_string(), json })
}

fn forget(kind: &str, id: SessionId) -> Change {
    Change::Forget { kind: kind.to_owned(), id: id.to_string() }
}

/// Reads stored facts. Those that cannot be read, of a newer Warren or damaged, are left out.
fn read_all<T: DeserializeOwned>(facts: &[Fact]) -> Vec<T> {
    let read = |fact: &Fact| {
        let read = serde_json::from_str(&fact.json);
        read.inspect_err(|error| {
            tracing::error!(kind = fact.kind, id = fact.id, %error, "a move cannot be read");
        })
        .ok()
    };
    facts.iter().filter_map(read).collect()
}
