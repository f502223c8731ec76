//! The workspace: sessions, files, git and teams of a machine, as clients ask for them.
//!
//! What the specification names keeps its names and fields; what it uses and does not define is
//! defined here in the same style, and marked as ours. A reader of the specification's own passes
//! over what is ours.
//!
//! - [`client`]: what clients and a daemon tell each other, one type for each message
//! - [`session`], [`project`], [`team`], [`cluster`]: the objects that messages carry
//! - [`ids`]: ids of sessions, projects, teams, waits and permission requests
//! - [`limits`]: what the fields of requests may hold, and how long things may take
//! - [`frame`]: the binary frame that output goes in
//! - [`role`]: the roles that a client can have
//! - [`base64`]: bytes inside of messages

pub mod base64;
mod bounded;
pub mod client;
pub mod cluster;
pub mod frame;
pub mod ids;
pub mod limits;
pub mod project;
pub mod role;
pub mod session;
pub mod team;

pub use client::{
    AgentEvent, BadMessage, ChangeStatus, ClientMessage, FileEntry, FileKind, GitChange, GitStatus,
    InboxMessage, Notice, NoticeLevel, PermissionOutcome, Problem, ReplyKind, RequestKind,
    ServerMessage, SessionSnapshot, TurnOutcome, decode_reply, decode_request,
};
pub use cluster::{ClusterMember, ClusterStatus};
pub use frame::{BadFrame, OutputFrame};
pub use ids::{PermissionId, ProjectId, SessionId, TeamId, WaitId};
pub use project::Project;
pub use role::Role;
pub use session::{SessionInfo, SessionKind, SessionMode, SessionStatus};
pub use team::{Team, TeamStatus};

#[cfg(test)]
mod tests;
