//! The workspace: terminals and agents that run on this machine, and its projects. Teams and the
//! clients' socket are crates of their own, above this one.
//!
//! - [`Workspace`]: all parts, put together in `workspace`; [`Counts`]: numbers for health and metrics
//! - [`Settings`]: its directory and its bounds
//! - `identity`: a client's name, role and connection; `member_tokens`: the tokens by which agents prove their
//!   membership in a team
//! - `sessions`: sessions, their output and their viewers, kept across restarts
//! - `engine`: the interface of all engines; `engines`: starts the engine of a session; `host`: the
//!   parts of the workspace that engines use, and the interface by which they find models
//! - `terminal`, `agents`, `adopted`: the engines
//! - `projects`: working directories, their users and environments; `users`: the users
//! - `events`: messages to all clients
//! - `audit`: the audit log; `refusal`: why a request is refused
//! - `testing`: a workspace for tests, also of the crates above

mod adopted;
mod agents;
mod audit;
mod engine;
mod engines;
mod events;
mod host;
mod identity;
mod member_tokens;
mod projects;
mod refusal;
mod sessions;
mod settings;
mod terminal;
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::expect_used, clippy::unwrap_used, reason = "it is for tests")]
pub mod testing;
pub mod users;
mod workspace;

pub use audit::Audit;
pub use engine::{PermissionAnswer, PromptFate, Receipt, TypingTime};
pub use events::{Event, Events};
pub use host::SessionModels;
pub use identity::{ClientId, Identity, Member};
pub use member_tokens::MemberTokens;
pub use projects::{ProjectFolder, Projects, path_text};
pub use refusal::{Refusal, blocking};
pub use sessions::{
    Attachment, Counts, Facts, NewEngine, NewSession, PromptAcceptance, Sessions, StreamItem,
    TranscriptPosition, TurnFollower, WeakSessions, moving,
};
pub use settings::{AgentSettings, Gateway, GatewaySlot, NodeSlot, Settings};
pub use workspace::{Parts, StartError, Workspace};
