//! The interface of sessions to the rest of the workspace.

use futures_util::future::BoxFuture;
use protocol::workspace::{Project, ProjectId, SessionId};
use session::terminal::size::Size;

use super::{facts::Facts, feed::Feed};
use crate::{engine::Engine, refusal::Refusal};

/// A started engine; for an adopted process also its start time, in ticks since boot.
pub(crate) type Started = (Box<dyn Engine>, Option<u64>);

/// The interface of sessions to the rest of the workspace: engines, projects, and teams that follow
/// turns.
pub(crate) trait Outside: Send + Sync {
    fn start(
        &self,
        facts: Facts,
        size: Size,
        feed: Feed,
    ) -> BoxFuture<'static, Result<Started, Refusal>>;

    fn project(&self, id: ProjectId) -> Result<Project, Refusal>;

    /// The users that sessions may run as.
    fn run_as(&self) -> &[String];

    /// A turn of a member of a team has begun.
    fn turn_started(&self, session: SessionId, turn: u64);

    /// A turn of a member of a team has ended: whether it succeeded, and its final text.
    fn turn_ended(&self, session: SessionId, turn: u64, ok: bool, text: Option<String>);

    /// A member of a team was killed, or has ended.
    fn session_gone(&self, session: SessionId);
}
