//! Starts the engines of sessions.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{SessionKind, SessionMode};
use session::terminal::size::Size;

use crate::{
    adopted,
    agents::{self, args::ArgRules},
    engine::CommandLine,
    events::Events,
    host::EngineHost,
    refusal::{Refusal, blocking},
    sessions::{EngineStart, EngineStarter, Facts, Feed},
    terminal,
};

/// Starts the engines of sessions.
pub(crate) struct Engines {
    pub(crate) host: Arc<EngineHost>,
    pub(crate) events: Events,
    pub(crate) arg_rules: ArgRules,
}

impl EngineStarter for Engines {
    fn start(
        &self,
        facts: Facts,
        size: Size,
        feed: Feed,
    ) -> BoxFuture<'static, Result<EngineStart, Refusal>> {
        let (host, events) = (Arc::clone(&self.host), self.events.clone());
        async move {
            match facts.mode {
                SessionMode::Sdk => Ok((agents::start(&host, &facts, feed)?, None)),
                SessionMode::Pty => {
                    let line = command_line(&host, &events, &facts, &feed)?;
                    Ok((terminal::start(&host, &facts, line, size, feed).await?, None))
                }
                SessionMode::Adopted => {
                    let (engine, start_time) = adopted::start(&host, &facts, feed).await?;
                    Ok((engine, Some(start_time)))
                }
            }
        }
        .boxed()
    }

    fn take_over(
        &self,
        facts: Facts,
        feed: Feed,
        child: process::Child,
    ) -> BoxFuture<'static, Result<EngineStart, Refusal>> {
        let (host, events) = (Arc::clone(&self.host), self.events.clone());
        async move {
            match facts.mode {
                SessionMode::Pty => {
                    agents::go_on_in_terminal(&host, &events, &facts, &feed, &child.journal)?;
                    Ok((terminal::take_over(&host, child, feed)?, None))
                }
                SessionMode::Sdk => {
                    Ok((agents::take_over(&host, &facts, feed, child).await?, None))
                }
                SessionMode::Adopted => Err(Refusal::invalid("nobody started it")),
            }
        }
        .boxed()
    }

    fn find_model(&self, facts: &Facts) -> BoxFuture<'static, Result<(), Refusal>> {
        let model = agents::gateway::Model::wanted(&self.host.settings.agents, facts);
        let host = Arc::clone(&self.host);
        async move {
            let (Some(model), Some(models)) = (model, host.models()) else { return Ok(()) };
            models.find(&model).await.map_err(Refusal::Invalid)
        }
        .boxed()
    }

    fn check(&self, facts: Facts) -> BoxFuture<'static, Result<(), Refusal>> {
        let host = Arc::clone(&self.host);
        async move { blocking(move || agents::check(&host, &facts)).await }.boxed()
    }

    fn host(&self) -> Option<Arc<EngineHost>> {
        Some(Arc::clone(&self.host))
    }

    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        self.arg_rules.check(args, administrator)
    }
}

/// The command line that runs in a terminal. The project's environment comes first, so that an
/// agent's own wins.
fn command_line(
    host: &EngineHost,
    events: &Events,
    facts: &Facts,
    feed: &Feed,
) -> Result<CommandLine, Refusal> {
    let mut env = host.project_env(facts.project_id);
    let line = match &facts.kind {
        SessionKind::Shell { command, args } => {
            let args = args.clone().unwrap_or_default();
            CommandLine { program: command.clone(), args, env: Vec::new() }
        }
        SessionKind::Claude | SessionKind::Agent { .. } => {
            agents::interactive(host, events, facts, feed)?
        }
    };
    env.extend(line.env);
    Ok(CommandLine { env, ..line })
}
