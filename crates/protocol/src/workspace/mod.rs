//! The workspace: sessions, files, git and teams of a machine, for clients and for the other members
//! of a cluster.
//!
//! Everything in the specification has its names and fields. Things that it uses but does not
//! define are defined here in the same style, and marked as ours. Readers that only know the
//! specification ignore these.
//!
//! - [`client`]: messages between clients and a daemon, one type for each
//! - [`peer`]: messages between the members of a cluster
//! - [`session`], [`project`], [`team`], [`cluster`]: the objects that messages carry
//! - [`ids`]: ids of sessions, projects, teams, waits and permission requests
//! - [`limits`]: limits for the fields of requests, and time limits
//! - [`frame`]: the binary frame of output
//! - [`role`]: the roles of clients
//! - [`modes`]: the modes of a terminal that sessions keep
//! - [`decode`]: faults of messages
//! - [`base64`]: bytes inside messages

pub mod base64;
mod bounded;
pub mod client;
pub mod cluster;
pub mod decode;
mod define;
pub mod frame;
pub mod ids;
pub mod limits;
pub mod modes;
pub mod peer;
pub mod project;
pub mod role;
pub mod session;
pub mod team;

pub use client::{
    AgentEvent, ChangeStatus, ClientMessage, FileEntry, FileKind, GitChange, GitStatus,
    InboxMessage, Notice, NoticeLevel, PermissionOutcome, ReplyKind, RequestKind, ServerMessage,
    SessionSnapshot, TurnOutcome, decode_reply, decode_request,
};
pub use cluster::{ClusterMember, ClusterStatus};
pub use decode::{BadMessage, Problem};
pub use frame::{BadFrame, OutputFrame};
pub use ids::{PermissionId, ProjectId, SessionId, TeamId, WaitId};
pub use peer::{FromPeer, PeerMessage, decode_peer};
pub use project::Project;
pub use role::Role;
pub use session::{SessionInfo, SessionKind, SessionMode, SessionStatus};
pub use team::{Team, TeamStatus};

#[cfg(test)]
mod tests;
