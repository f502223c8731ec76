//! Every message of a daemon (specification, "ServerMessage").

use super::{
    agents::{AgentEventMessage, PermissionRequest, PermissionResolved, TurnEvents, Usage},
    cluster::{
        ClusterActionAck, ClusterConfig, ClusterInvitation, ClusterInviteList, ClusterStatusReply,
    },
    connection::{AuthResult, ClientNotice, ErrorMessage, InputAck},
    files::{
        DirectoryListing, ProjectFileChunk, ProjectFileChunkError, ProjectFileContent,
        ProjectFileError, ProjectFileList, ProjectFileSaved, ProjectFileWriteConflict,
        ProjectFsActionError, ProjectFsActionResult,
    },
    git::{GitDiffResult, GitError, GitStatus},
    projects::{OfProject, ProjectList, ProjectSaved},
    sessions::{OfSession, SessionList, SessionMoved, WithSession},
    teams::{
        HandoffResult, OfTeam, TeamCreated, TeamInbox, TeamList, TeamMessage, TeamMessageSent,
        TeamUpdated, TeamWaitResult, WorkerAssigned, WorkerResult, WorkerSpawned,
    },
    terminals::{History, Output, SessionHistory, SessionSnapshot, TerminalSize},
};
use crate::workspace::{
    decode::{BadMessage, decode},
    define::messages,
};

messages! {
    example "keepalive_ack";
    /// A message from a daemon to a client.
    pub enum ServerMessage: ReplyKind {
        /// Whether the client may continue.
        "auth_result" => AuthResult(AuthResult),
        /// A sign of life.
        "keepalive_ack" => KeepaliveAck,
        /// Something the user should know.
        "client_notice" => ClientNotice(ClientNotice),
        /// A request was not served.
        "error" => Error(ErrorMessage),

        /// A session was made.
        "session_created" => SessionCreated(WithSession),
        /// The sessions.
        "session_list" => SessionList(SessionList),
        /// Output of this session follows.
        "attached" => Attached(OfSession),
        /// No more output of this session follows.
        "detached" => Detached(OfSession),
        /// Output. On the wire a binary frame, see [`crate::workspace::frame`].
        "output" => Output(Output),
        /// Where output continues. Ours.
        "session_history" => SessionHistory(SessionHistory),
        /// The screen, after output was left out. Ours.
        "session_snapshot" => SessionSnapshot(SessionSnapshot),
        /// Earlier output. Ours.
        "history" => History(History),
        /// Events of an agent's turns, as stored. Ours.
        "turns" => Turns(TurnEvents),
        /// A session's status has changed.
        "session_status_changed" => SessionStatusChanged(WithSession),
        /// A session has ended.
        "session_killed" => SessionKilled(OfSession),
        /// A session has moved to another machine, or would move there. Ours.
        "session_moved" => SessionMoved(SessionMoved),
        /// The session does not exist.
        "session_unknown" => SessionUnknown(OfSession),
        /// A terminal is open.
        "terminal_opened" => TerminalOpened(WithSession),
        /// Another client changed the terminal's size. Ours.
        "terminal_size" => TerminalSize(TerminalSize),
        /// Input was applied. Ours.
        "input_ack" => InputAck(InputAck),

        /// The events of an agent's line of output. Ours.
        "agent_event" => AgentEvent(AgentEventMessage),
        /// An agent asks whether it may use a tool. Ours.
        "permission_request" => PermissionRequest(PermissionRequest),
        /// That question is no longer open. Ours.
        "permission_resolved" => PermissionResolved(PermissionResolved),
        /// The usage of a turn. Ours.
        "usage" => Usage(Usage),

        /// A directory of the host.
        "directory_listing" => DirectoryListing(DirectoryListing),
        /// A project was made or changed. Ours.
        "project_saved" => ProjectSaved(ProjectSaved),
        /// A project is no longer known. Ours.
        "project_removed" => ProjectRemoved(OfProject),
        /// The projects. Ours.
        "project_list" => ProjectList(ProjectList),

        /// A directory of a project.
        "project_file_list" => ProjectFileList(ProjectFileList),
        /// A file as text.
        "project_file_content" => ProjectFileContent(ProjectFileContent),
        /// A file was not listed, read or written.
        "project_file_error" => ProjectFileError(ProjectFileError),
        /// One window of a file.
        "project_file_chunk" => ProjectFileChunk(ProjectFileChunk),
        /// A window was not read.
        "project_file_chunk_error" => ProjectFileChunkError(ProjectFileChunkError),
        /// A file is written.
        "project_file_saved" => ProjectFileSaved(ProjectFileSaved),
        /// A file has other content than the client saw.
        "project_file_write_conflict" => ProjectFileWriteConflict(ProjectFileWriteConflict),
        /// Something was made, moved, copied or deleted.
        "project_fs_action_result" => ProjectFsActionResult(ProjectFsActionResult),
        /// It was not done.
        "project_fs_action_error" => ProjectFsActionError(ProjectFsActionError),
        /// Something changed in a project that is watched.
        "project_files_changed" => ProjectFilesChanged(OfProject),
        /// The changes since the last commit.
        "git_status_result" => GitStatusResult(GitStatus),
        /// The changes of one file.
        "git_diff_result" => GitDiffResult(GitDiffResult),
        /// Git could not be run, or has failed.
        "git_error" => GitError(GitError),

        /// A team is made.
        "team_created" => TeamCreated(TeamCreated),
        /// A team worker is made.
        "worker_spawned" => WorkerSpawned(WorkerSpawned),
        /// A message to a member.
        "team_message" => TeamMessage(TeamMessage),
        /// A message was stored for its recipient. Ours.
        "team_message_sent" => TeamMessageSent(TeamMessageSent),
        /// The teams, or the requested one.
        "team_list" => TeamList(TeamList),
        /// A team has changed.
        "team_updated" => TeamUpdated(TeamUpdated),
        /// A team is deleted.
        "team_deleted" => TeamDeleted(OfTeam),
        /// The result of a handoff.
        "handoff_result" => HandoffResult(HandoffResult),
        /// A team worker has its work.
        "worker_assigned" => WorkerAssigned(WorkerAssigned),
        /// The workers that have reported.
        "team_wait_result" => TeamWaitResult(TeamWaitResult),
        /// A member's messages.
        "team_inbox" => TeamInbox(TeamInbox),
        /// The result of a team worker. Ours.
        "worker_result_received" => WorkerResultReceived(WorkerResult),
        /// The team has no more work. Ours.
        "team_completed" => TeamCompleted(OfTeam),

        /// The state of the cluster.
        "cluster_status" => ClusterStatus(ClusterStatusReply),
        /// The settings of the cluster.
        "cluster_config" => ClusterConfig(ClusterConfig),
        /// The result of a change of the cluster.
        "cluster_action_ack" => ClusterActionAck(ClusterActionAck),
        /// An invitation that was made.
        "cluster_invitation" => ClusterInvitation(ClusterInvitation),
        /// The invitations that may still be used.
        "cluster_invite_list" => ClusterInviteList(ClusterInviteList),
    }
}

impl ServerMessage {
    /// An `error` with this text.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(ErrorMessage { message: message.into() })
    }
}

/// Reads a daemon's message. Unknown fields are ignored.
///
/// # Errors
/// [`BadMessage`]; a `type` that this version does not know is one.
pub fn decode_reply(text: &str) -> Result<ServerMessage, BadMessage> {
    decode(text)
}
