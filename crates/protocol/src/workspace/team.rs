//! A team in the clients' form (specification, "Team Object").

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ids::{ProjectId, SessionId, TeamId};

/// A team: a leader session and its team workers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Team {
    /// Its id.
    pub id: TeamId,
    /// Its name, for people.
    pub name: String,
    /// The leader's session.
    pub leader_session_id: SessionId,
    /// Its team workers, the oldest first.
    pub worker_session_ids: Vec<SessionId>,
    /// Whether any session of it still runs.
    pub status: TeamStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When anything last happened in it.
    pub last_active: Timestamp,
    /// The project it belongs to.
    pub project_id: Option<ProjectId>,
}

/// Whether any session of a team still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TeamStatus {
    /// A session of it runs.
    Active,
    /// No session of it runs.
    Inactive,
}
