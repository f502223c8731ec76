//! Agents: command lines of others, driven turn by turn.
//!
//! - [`Agents`]: how they are started
//! - `plan`: from what is known of a session to what its agent is started with
//! - `programs`: where the command lines are, and how to install what is missing
//! - `args`: which further arguments who may give, and in which form
//! - `gateway`: how an agent thinks with this server's models, under a key of its own
//! - `private`: files that only an agent's user may read
//! - `running`: the engine: `session::agent`'s machine with a process, a clock and files
//! - `terminal`: an agent's own interface in a terminal, and what is put away after it

mod args;
pub(crate) mod gateway;
pub(crate) mod plan;
pub(crate) mod private;
pub(crate) mod programs;
pub(crate) mod running;
mod terminal;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;

use self::{plan::Plan, running::Running};
use crate::{
    AgentSettings,
    engine::Engine,
    refusal::Refusal,
    sessions::{Facts, Feed},
    work::Shared,
};

/// A program, its arguments and further environment.
pub(crate) type Command = (String, Vec<String>, Vec<(String, String)>);

/// The agents of this machine.
#[derive(Default)]
pub(crate) struct Agents {
    /// Arguments that callers below administrators may give.
    allowed_args: Vec<String>,
}

impl Agents {
    /// With the settings' rules.
    pub(crate) fn new(settings: &AgentSettings) -> Self {
        Self { allowed_args: settings.allowed_args.clone() }
    }

    /// Starts (or takes up again) the agent of a session of mode `sdk`: nothing runs until its
    /// first prompt. A provider that is not known, or whose program is missing, is refused in words
    /// that say how to install it.
    pub(crate) fn start(
        &self,
        shared: &Arc<Shared>,
        facts: &Facts,
        feed: Feed,
    ) -> Result<Box<dyn Engine>, Refusal> {
        let plan = Plan::new(shared, facts)?;
        Ok(Box::new(Running::new(shared, plan, feed)))
    }

    /// The command line of an agent's own interactive interface, for a terminal: program,
    /// arguments, further environment.
    pub(crate) fn interactive(
        &self,
        shared: &Arc<Shared>,
        facts: &Facts,
    ) -> Result<Command, Refusal> {
        terminal::command(shared, &Plan::new(shared, facts)?)
    }

    /// Arguments that are not on the list for callers below administrators.
    pub(crate) fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        args::check(args, &self.allowed_args, administrator)
    }
}
