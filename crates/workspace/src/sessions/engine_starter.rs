//! The interface by which sessions get their engines.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use session::terminal::size::Size;

use super::{feed::Feed, life::facts::Facts};
use crate::{engine::Engine, host::EngineHost, refusal::Refusal};

/// A started engine; for an adopted process also its start time, in ticks since boot.
pub(crate) type EngineStart = (Box<dyn Engine>, Option<u64>);

/// Starts the engines of sessions.
pub(crate) trait EngineStarter: Send + Sync {
    /// Starts the engine of a session with these facts. The engine reports to `feed`.
    fn start(
        &self,
        facts: Facts,
        size: Size,
        feed: Feed,
    ) -> BoxFuture<'static, Result<EngineStart, Refusal>>;

    /// Continues the engine of a session whose process outlived an earlier daemon.
    fn take_over(
        &self,
        facts: Facts,
        feed: Feed,
        child: process::Child,
    ) -> BoxFuture<'static, Result<EngineStart, Refusal>>;

    /// Looks for the model of a new session, if it is one of this server's or another machine's.
    fn find_model(&self, facts: &Facts) -> BoxFuture<'static, Result<(), Refusal>>;

    /// Refuses an agent that could not be started with these facts.
    fn check(&self, facts: Facts) -> BoxFuture<'static, Result<(), Refusal>>;

    /// The parts that engines use.
    fn host(&self) -> Option<Arc<EngineHost>>;

    /// Refuses arguments that this caller may not give to an agent.
    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal>;
}
