//! The workspace: terminals and agents that run on this machine, and its projects. Teams and the
//! clients' socket are crates of their own, above this one.
//!
//! - [`Workspace`]: the whole, put together in `workspace`; [`Counts`]: its figures
//! - [`Settings`]: its directory and its bounds
//! - `identity`: a client's name and role; `member_tokens`: the tokens by which agents prove their
//!   membership in a team
//! - `sessions`: sessions, their output and their viewers, kept over restarts
//! - `engine`: the interface of all engines; `engines`: starts the engine of a session; `host`: the
//!   parts of the workspace that engines use; `command`: a command line
//! - `terminal`, `agents`, `adopted`: the engines
//! - `session_models`: the interface by which sessions find models
//! - `projects`: working directories, their users and environments; `users`: the users
//! - `events`: messages to all clients
//! - `audit`: the audit log; `refusal`: why a request is refused
//! - `testing`: a workspace for tests, also of the crates above

mod adopted;
mod agents;
mod audit;
mod command;
mod counts;
mod engine;
mod engines;
mod events;
mod host;
mod identity;
mod member_tokens;
mod projects;
mod refusal;
mod session_models;
mod sessions;
mod settings;
mod terminal;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "it is for tests")]
pub mod testing;
pub mod users;
mod workspace;

pub use audit::Audit;
pub use counts::Counts;
pub use engine::{PermissionAnswer, PromptFate, Receipt, Typed};
pub use events::{Event, Events};
pub use identity::{Identity, Member};
pub use member_tokens::MemberTokens;
pub use projects::{ProjectFolder, Projects, path_text};
pub use refusal::Refusal;
pub use session_models::SessionModels;
pub use sessions::{
    Attachment, ClientId, Facts, NewEngine, NewSession, Prompted, Sessions, Streamed,
    TranscriptPosition, TurnFollower, WeakSessions, moving,
};
pub use settings::{AgentSettings, Gateway, GatewaySlot, NodeSlot, Settings};
pub use workspace::{Parts, StartError, Workspace};
