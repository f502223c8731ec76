//! Agents: command lines of others, driven turn by turn.
//!
//! - [`start`], [`interactive`]: how they are started
//! - `plan`: from what is known of a session to what its agent is started with
//! - `programs`: where the command lines are, and how to install what is missing
//! - `args`: which further arguments a caller may give, and in which form
//! - `gateway`: how an agent thinks with this server's models, under a key of its own
//! - `private`: files that only an agent's user may read
//! - `running`: the engine: `session::agent`'s machine with a process, a clock and files
//! - `terminal`: an agent's own interface in a terminal, and what is put away after it

pub(crate) mod args;
pub(crate) mod gateway;
pub(crate) mod plan;
pub(crate) mod private;
pub(crate) mod programs;
pub(crate) mod running;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

pub(crate) use self::terminal::command as interactive;
use self::{plan::Plan, running::Running};
use crate::{
    engine::Engine,
    host::EngineHost,
    refusal::Refusal,
    sessions::{Facts, Feed},
};

/// Starts (or takes up again) the agent of a session of mode `sdk`: nothing runs until its first
/// prompt. A provider that is not known, or whose program is missing, is refused in words that say how
/// to install it.
pub(crate) fn start(
    host: &Arc<EngineHost>,
    facts: &Facts,
    feed: Feed,
) -> Result<Box<dyn Engine>, Refusal> {
    let plan = Plan::new(host, facts)?;
    Ok(Box::new(Running::new(host, plan, feed)))
}
