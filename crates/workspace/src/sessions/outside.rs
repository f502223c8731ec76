//! The rest of the workspace as sessions need it.

use futures_util::future::BoxFuture;
use protocol::workspace::{Project, ProjectId, SessionId};
use session::terminal::size::Size;

use super::{facts::Facts, feed::Feed};
use crate::{engine::Engine, refusal::Refusal};

/// An engine that runs; of an adopted process also when that was started.
pub(crate) type Started = (Box<dyn Engine>, Option<u64>);

/// The rest of the workspace as sessions need it: engines, projects, and teams that follow turns.
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

    /// It has ended, with its final text.
    fn turn_ended(&self, session: SessionId, turn: u64, ok: bool, text: Option<String>);

    /// A member of a team was killed, or has ended.
    fn session_gone(&self, session: SessionId);
}
