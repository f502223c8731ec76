//! Teams: making them, giving work to their members, and messages between members.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::workspace::{
    bounded::{maybe_args, maybe_name, maybe_path, maybe_waited, name, text},
    ids::{ProjectId, SessionId, TeamId, WaitId},
    limits::{PAYLOAD_MAX, PROMPT_MAX},
    session::{SessionInfo, SessionMode},
    team::Team,
};

/// `create_team`: a leader session, and a team around it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateTeam {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Where the leader starts; absent: the project's directory.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The leader's model.
    #[serde(default, deserialize_with = "maybe_name")]
    pub model: Option<String>,
    /// More arguments for the leader's command line.
    #[serde(default, deserialize_with = "maybe_args")]
    pub extra_args: Option<Vec<String>>,
    /// The project it belongs to.
    pub project_id: Option<ProjectId>,
    /// Which agent leads; absent: `claude`. Ours.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its mode; absent: turn by turn. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SessionMode>,
}

/// `spawn_worker`: one more team worker, without work. Unlike in [`CreateTeam`], the name may be absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnWorker {
    /// In which team.
    pub team_id: TeamId,
    /// Where it starts; absent: where the leader did.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Its model.
    #[serde(default, deserialize_with = "maybe_name")]
    pub model: Option<String>,
    /// More arguments for its command line.
    #[serde(default, deserialize_with = "maybe_args")]
    pub extra_args: Option<Vec<String>>,
    /// Its name.
    #[serde(default, deserialize_with = "maybe_name")]
    pub name: Option<String>,
    /// Which agent; absent: as the leader. Ours.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its mode; absent: turn by turn. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SessionMode>,
    /// The machine that runs it: its node id, how that begins, or its name; absent: the one that
    /// keeps the team. Ours.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// `relay_team_message`: from one member to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayTeamMessage {
    /// In which team.
    pub team_id: TeamId,
    /// The sender.
    pub from_session_id: SessionId,
    /// The recipient; absent: the leader or, from the leader, every team worker.
    pub to_session_id: Option<SessionId>,
    /// Its payload.
    #[serde(deserialize_with = "text::<_, PAYLOAD_MAX>")]
    pub payload: String,
}

/// `handoff`: give work to a new team worker, and wait for the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    /// In which team.
    pub team_id: TeamId,
    /// The work.
    #[serde(deserialize_with = "text::<_, PROMPT_MAX>")]
    pub prompt: String,
    /// The name of the team worker.
    #[serde(default, deserialize_with = "maybe_name")]
    pub worker_name: Option<String>,
    /// How long to wait, in milliseconds; absent: as the daemon likes.
    pub timeout_ms: Option<u64>,
    /// Which agent; absent: as the leader. Ours.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its mode; absent: turn by turn. Ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SessionMode>,
    /// Where it starts; absent: where the leader did. Ours.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The machine that runs it: its node id, how that begins, or its name; absent: the one that
    /// keeps the team. Ours.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// `assign`: give work to a new team worker, without waiting. Unlike in a [`Handoff`], an absent
/// `worker_name` is not written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assign {
    /// In which team.
    pub team_id: TeamId,
    /// The work.
    #[serde(deserialize_with = "text::<_, PROMPT_MAX>")]
    pub prompt: String,
    /// The name of the team worker. Ours, like the fields below.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub worker_name: Option<String>,
    /// Which agent; absent: as the leader.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Its mode; absent: turn by turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<SessionMode>,
    /// Where it starts; absent: where the leader did. Ours.
    #[serde(default, deserialize_with = "maybe_path", skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// The machine that runs it: its node id, how that begins, or its name; absent: the one that
    /// keeps the team. Ours.
    #[serde(default, deserialize_with = "maybe_name", skip_serializing_if = "Option::is_none")]
    pub node_id: Option<String>,
}

/// `team_wait`: wait for team workers to report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamWait {
    /// In which team.
    pub team_id: TeamId,
    /// The sessions to wait for; none: all that have work.
    #[serde(default, deserialize_with = "maybe_waited")]
    pub for_session_ids: Option<Vec<SessionId>>,
    /// How long to wait, in milliseconds; absent: as the daemon likes.
    pub timeout_ms: Option<u64>,
    /// An earlier wait to continue.
    pub wait_id: Option<WaitId>,
}

/// `get_team_inbox`: the messages that a member was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetTeamInbox {
    /// In which team.
    pub team_id: TeamId,
    /// Its session id.
    pub session_id: SessionId,
    /// The number of the first message to send; none: all.
    pub since_seq: Option<u64>,
}

/// The result of a team worker's work: `report_result` from itself, `worker_result_received` to
/// clients. Ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerResult {
    /// In which team.
    pub team_id: TeamId,
    /// The team worker.
    pub worker_session_id: SessionId,
    /// Whether it went well.
    pub success: bool,
    /// Its result.
    #[serde(deserialize_with = "text::<_, PAYLOAD_MAX>")]
    pub result: String,
}

/// A message about one team with no other field: `get_team`, `delete_team`; `team_deleted`, and
/// `team_completed`, when the team has no more work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfTeam {
    /// Its team id.
    pub team_id: TeamId,
}

/// `team_created`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamCreated {
    /// The team.
    pub team: Team,
    /// Its leader.
    pub leader_session: Box<SessionInfo>,
}

/// `worker_spawned`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerSpawned {
    /// The team.
    pub team: Team,
    /// Its new team worker.
    pub worker_session: Box<SessionInfo>,
}

/// `team_message`: a message from another member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamMessage {
    /// In which team.
    pub team_id: TeamId,
    /// The sender.
    pub from_session_id: SessionId,
    /// Its payload.
    pub payload: String,
}

/// `team_message_sent`: a message was stored for its recipient. Ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamMessageSent {
    /// In which team.
    pub team_id: TeamId,
    /// Its number.
    pub seq: u64,
}

/// `team_list`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamList {
    /// The teams.
    pub teams: Vec<Team>,
}

/// `team_updated`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamUpdated {
    /// The team's present state.
    pub team: Team,
}

/// `handoff_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffResult {
    /// In which team.
    pub team_id: TeamId,
    /// The team worker.
    pub worker_session_id: SessionId,
    /// Whether it went well.
    pub success: bool,
    /// Its result; none while it runs.
    pub result: Option<String>,
    /// Whether it is over.
    pub completed: bool,
    /// The id for waiting on, if it is not over.
    pub wait_id: Option<WaitId>,
}

/// `worker_assigned`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerAssigned {
    /// In which team.
    pub team_id: TeamId,
    /// The team worker.
    pub worker_session_id: SessionId,
}

/// `team_wait_result`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamWaitResult {
    /// In which team.
    pub team_id: TeamId,
    /// The workers that have reported.
    pub completed_workers: Vec<SessionId>,
    /// The workers that have not reported.
    pub pending_workers: Vec<SessionId>,
    /// Whether the time was over before all had reported.
    pub timed_out: bool,
    /// The id for waiting on, if the time was over.
    pub wait_id: Option<WaitId>,
    /// The results of the workers that have reported. Ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<WorkerResult>,
}

/// `team_inbox`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TeamInbox {
    /// In which team.
    pub team_id: TeamId,
    /// Its session id.
    pub session_id: SessionId,
    /// The messages, by their numbers.
    pub messages: Vec<InboxMessage>,
    /// The `since_seq` of the next request.
    pub next_seq: u64,
}

/// A message that a member was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboxMessage {
    /// Its number.
    pub seq: u64,
    /// The sender.
    pub from_session_id: SessionId,
    /// Its payload.
    pub payload: String,
    /// When it was stored.
    pub delivered_at: Timestamp,
}
