//! Every message of a client (specification, "ClientMessage").

use super::{
    agents::{GetTurns, PermissionResponse},
    cluster::{
        ClusterForget, ClusterJoin, ClusterRevokeInvite, PromoteNode, RenameNode,
        UpdateClusterConfig,
    },
    connection::Auth,
    files::{
        CreateProjectEntry, DeleteProjectEntry, ListDirectory, ListProjectFiles, ReadProjectFile,
        ReadProjectFileChunk, TransferProjectEntry, UploadProjectFile, UploadProjectFilePart,
        WriteProjectFile,
    },
    git::GitDiff,
    projects::{CreateProject, OfProject, UpdateProject},
    sessions::{
        AdoptSession, Attach, ListSessions, MoveSession, NewSession, OfSession, RenameSession,
        SendInput,
    },
    teams::{
        Assign, CreateTeam, GetTeamInbox, Handoff, OfTeam, RelayTeamMessage, SpawnWorker, TeamWait,
        WorkerResult,
    },
    terminals::{GetHistory, OpenTerminal, Resize, TerminalInput},
};
use crate::workspace::{
    decode::{BadMessage, decode},
    define::messages,
};

messages! {
    example "list_sessions";
    /// A message from a client to a daemon.
    pub enum ClientMessage: RequestKind {
        /// Authenticate; the first message of all.
        "auth" => Auth(Auth),
        /// Ask for a sign of life.
        "keepalive" => Keepalive,

        /// Make a session: an agent, or an agent's own terminal.
        "new_session" => NewSession(Box<NewSession>),
        /// Follow a session's output.
        "attach" => Attach(Attach),
        /// Stop following output.
        "detach" => Detach,
        /// Give a session a whole prompt.
        "send_input" => SendInput(SendInput),
        /// List the sessions.
        "list_sessions" => ListSessions(ListSessions),
        /// End a session.
        "kill_session" => KillSession(OfSession),
        /// Adopt a process that was started elsewhere.
        "adopt_session" => AdoptSession(AdoptSession),
        /// Rename a session.
        "rename_session" => RenameSession(RenameSession),
        /// Move an agent's session to another machine. Ours.
        "move_session" => MoveSession(MoveSession),
        /// End an agent's turn. Ours.
        "interrupt" => Interrupt(OfSession),
        /// Answer an agent's question. Ours.
        "permission_response" => PermissionResponse(PermissionResponse),

        /// Run a command in a new terminal.
        "open_terminal" => OpenTerminal(Box<OpenTerminal>),
        /// Type into a terminal. Ours.
        "terminal_input" => TerminalInput(TerminalInput),
        /// Report the size of the client's terminal. Ours.
        "resize" => Resize(Resize),
        /// Give the session the size of this client's terminal. Ours.
        "take_control" => TakeControl(OfSession),
        /// Ask for earlier output. Ours.
        "get_history" => GetHistory(GetHistory),
        /// Ask for the events of an agent's turns, as stored. Ours.
        "get_turns" => GetTurns(GetTurns),

        /// List a directory of the host.
        "list_directory" => ListDirectory(ListDirectory),
        /// Make a project. Ours.
        "create_project" => CreateProject(CreateProject),
        /// Change a project. Ours.
        "update_project" => UpdateProject(UpdateProject),
        /// Forget a project; its files stay. Ours.
        "delete_project" => DeleteProject(OfProject),
        /// List the projects. Ours.
        "list_projects" => ListProjects,

        /// List a directory of a project.
        "list_project_files" => ListProjectFiles(ListProjectFiles),
        /// Read a file as text.
        "read_project_file" => ReadProjectFile(ReadProjectFile),
        /// Read one window of a file.
        "read_project_file_chunk" => ReadProjectFileChunk(ReadProjectFileChunk),
        /// Write a file as text.
        "write_project_file" => WriteProjectFile(WriteProjectFile),
        /// Make an empty file.
        "create_project_file" => CreateProjectFile(CreateProjectEntry),
        /// Make a directory.
        "create_project_directory" => CreateProjectDirectory(CreateProjectEntry),
        /// Move a file or directory, or rename it.
        "move_project_entry" => MoveProjectEntry(TransferProjectEntry),
        /// Copy a file or directory.
        "copy_project_entry" => CopyProjectEntry(TransferProjectEntry),
        /// Delete a file or directory.
        "delete_project_entry" => DeleteProjectEntry(DeleteProjectEntry),
        /// Make a file of any bytes.
        "upload_project_file" => UploadProjectFile(UploadProjectFile),
        /// A part of a new file of any size. Ours.
        "upload_project_file_part" => UploadProjectFilePart(UploadProjectFilePart),
        /// Subscribe to changes of files; replaces what was watched before.
        "watch_project_files" => WatchProjectFiles(OfProject),
        /// Unsubscribe from changes of files.
        "unwatch_project_files" => UnwatchProjectFiles(OfProject),
        /// Ask what changed since the last commit.
        "git_status" => GitStatus(OfProject),
        /// Ask what changed in one file.
        "git_diff" => GitDiff(GitDiff),

        /// Make a team and its leader.
        "create_team" => CreateTeam(Box<CreateTeam>),
        /// Make a team worker without work.
        "spawn_worker" => SpawnWorker(Box<SpawnWorker>),
        /// Send a message to a member.
        "relay_team_message" => RelayTeamMessage(RelayTeamMessage),
        /// List the teams.
        "list_teams" => ListTeams,
        /// Show one team.
        "get_team" => GetTeam(OfTeam),
        /// Delete a team, and end its sessions.
        "delete_team" => DeleteTeam(OfTeam),
        /// Give work to a new team worker, and wait for it.
        "handoff" => Handoff(Handoff),
        /// Give work to a new team worker.
        "assign" => Assign(Assign),
        /// Wait for team workers.
        "team_wait" => TeamWait(TeamWait),
        /// Read a member's messages.
        "get_team_inbox" => GetTeamInbox(GetTeamInbox),
        /// Report the result of a team worker. Ours.
        "report_result" => ReportResult(WorkerResult),

        /// Ask for the state of the cluster.
        "cluster_status" => ClusterStatus,
        /// Ask for the settings of the cluster.
        "get_cluster_config" => GetClusterConfig,
        /// Change the settings of the cluster.
        "update_cluster_config" => UpdateClusterConfig(UpdateClusterConfig),
        /// Rename a node.
        "rename_node" => RenameNode(RenameNode),
        /// Invite one machine into the cluster.
        "cluster_invite" => ClusterInvite,
        /// List the invitations that may still be used.
        "cluster_invites" => ClusterInvites,
        /// Withdraw an invitation.
        "cluster_revoke_invite" => ClusterRevokeInvite(ClusterRevokeInvite),
        /// Join a cluster by an invitation.
        "cluster_join" => ClusterJoin(ClusterJoin),
        /// Leave the cluster.
        "cluster_leave" => ClusterLeave,
        /// Remove another machine from the cluster.
        "cluster_forget" => ClusterForget(ClusterForget),
        /// No longer has an effect.
        "force_election" => ForceElection,
        /// No longer has an effect.
        "promote_node" => PromoteNode(PromoteNode),
        /// No longer has an effect.
        "trigger_sync" => TriggerSync,
    }
}

/// Reads a client's message. Unknown fields are ignored; an absent field or `null` means the
/// default.
///
/// # Errors
/// [`BadMessage`], with a text for the sender.
pub fn decode_request(text: &str) -> Result<ClientMessage, BadMessage> {
    decode(text)
}
