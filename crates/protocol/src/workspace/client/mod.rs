//! Messages between clients and a daemon (specification, "Client Protocol").
//!
//! - [`request`]: [`ClientMessage`], every message of a client; [`reply`]: [`ServerMessage`], every
//!   message of a daemon; both with their readers
//! - the fields of both, by subject: [`connection`], [`sessions`], [`terminals`], [`agents`],
//!   [`projects`], [`files`], [`git`], [`teams`], [`cluster`]

pub mod agents;
pub mod cluster;
pub mod connection;
pub mod files;
pub mod git;
pub mod projects;
pub mod reply;
pub mod request;
pub mod sessions;
pub mod teams;
pub mod terminals;

pub use agents::{
    AgentEvent, AgentEventMessage, GetTurns, PermissionOutcome, PermissionRequest,
    PermissionResolved, PermissionResponse, StoredEvent, TurnEvents, TurnOutcome, Usage,
};
pub use cluster::{
    ClusterActionAck, ClusterConfig, ClusterForget, ClusterInvitation, ClusterInviteList,
    ClusterJoin, ClusterRevokeInvite, ClusterStatusReply, OpenInvite, PromoteNode, RenameNode,
    UpdateClusterConfig,
};
pub use connection::{Auth, AuthResult, ClientNotice, ErrorMessage, InputAck, Notice, NoticeLevel};
pub use files::{
    CreateProjectEntry, DeleteProjectEntry, DirectoryListing, FileEntry, FileKind, FileVersion,
    ListDirectory, ListProjectFiles, ProjectFileChunk, ProjectFileChunkError, ProjectFileContent,
    ProjectFileError, ProjectFileList, ProjectFileSaved, ProjectFileWriteConflict,
    ProjectFsActionError, ProjectFsActionResult, ReadProjectFile, ReadProjectFileChunk,
    TransferProjectEntry, UploadProjectFile, UploadProjectFilePart, WriteProjectFile,
};
pub use git::{ChangeStatus, GitChange, GitDiff, GitDiffResult, GitError, GitStatus};
pub use projects::{CreateProject, OfProject, ProjectList, ProjectSaved, UpdateProject};
pub use reply::{ReplyKind, ServerMessage, decode_reply};
pub use request::{ClientMessage, RequestKind, decode_request};
pub use sessions::{
    AdoptSession, Attach, ListSessions, MoveSession, NewSession, OfSession, RenameSession,
    SendInput, SessionList, SessionMoved, WithSession,
};
pub use teams::{
    Assign, CreateTeam, GetTeamInbox, Handoff, HandoffResult, InboxMessage, OfTeam,
    RelayTeamMessage, SpawnWorker, TeamCreated, TeamInbox, TeamList, TeamMessage, TeamMessageSent,
    TeamUpdated, TeamWait, TeamWaitResult, WorkerAssigned, WorkerResult, WorkerSpawned,
};
pub use terminals::{
    Encoding, GetHistory, History, OpenTerminal, Output, Resize, SessionHistory, SessionSnapshot,
    TerminalInput, TerminalSize,
};
