//! Agents: command-line programs of other makers, driven turn by turn.
//!
//! - [`start`], [`interactive`]: how they are started
//! - `plan`: what an agent is started with, from the facts of its session
//! - `programs`: where the agents' programs are, and how to install missing ones
//! - `args`: which further arguments a caller may give, and in which form
//! - `gateway`: how an agent uses this server's models, with a key of its own
//! - `private`: files that only an agent's user may read
//! - `agent_engine`: the engine: `session::agent`'s machine with a process, a clock and files
//! - `terminal`: an agent's own interface in a terminal, and the cleanup after it

pub(crate) mod agent_engine;
pub(crate) mod args;
pub(crate) mod gateway;
pub(crate) mod plan;
pub(crate) mod private;
pub(crate) mod programs;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

pub(crate) use self::terminal::{command as interactive, go_on as go_on_in_terminal};
use self::{agent_engine::AgentEngine, plan::Plan};
use crate::{
    engine::Engine,
    host::EngineHost,
    refusal::{Refusal, blocking},
    sessions::{Facts, Feed},
};

/// Refuses an agent that could not be started with these facts. It blocks.
pub(crate) fn check(host: &Arc<EngineHost>, facts: &Facts) -> Result<(), Refusal> {
    Plan::new(host, facts).map(drop)
}

/// Starts or resumes the agent of a session of mode `sdk`. Nothing runs until its first prompt. If
/// the provider is unknown or its program is missing, the refusal says how to install it.
pub(crate) fn start(
    host: &Arc<EngineHost>,
    facts: &Facts,
    feed: Feed,
) -> Result<Box<dyn Engine>, Refusal> {
    let plan = Plan::new(host, facts)?;
    Ok(Box::new(AgentEngine::new(host, plan, feed)))
}

/// Continues with the process of an agent that outlived an earlier daemon, in the middle of its turn.
pub(crate) async fn take_over(
    host: &Arc<EngineHost>,
    facts: &Facts,
    feed: Feed,
    child: process::Child,
) -> Result<Box<dyn Engine>, Refusal> {
    let (of_plan, known) = (Arc::clone(host), facts.clone());
    let plan = blocking(move || Plan::of_running(&of_plan, &known)).await?;
    Ok(Box::new(AgentEngine::take_over(host, plan, feed, child)?))
}
