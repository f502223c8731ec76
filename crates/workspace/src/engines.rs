//! Gives sessions access to the engines and the teams.

use std::sync::Arc;

use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{Project, ProjectId, SessionId, SessionKind, SessionMode};
use session::terminal::size::Size;

use crate::{
    adopted, agents,
    command::CommandLine,
    events::Events,
    host::EngineHost,
    refusal::Refusal,
    sessions::{Facts, Feed, Outside, Started},
    teams::Teams,
    terminal,
};

/// Starts engines, and passes turns on to teams.
pub(crate) struct Engines {
    pub(crate) host: Arc<EngineHost>,
    pub(crate) events: Events,
    pub(crate) teams: Arc<Teams>,
}

impl Outside for Engines {
    fn start(
        &self,
        facts: Facts,
        size: Size,
        feed: Feed,
    ) -> BoxFuture<'static, Result<Started, Refusal>> {
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

    fn project(&self, id: ProjectId) -> Result<Project, Refusal> {
        self.host.projects.get(id)
    }

    fn run_as(&self) -> &[String] {
        &self.host.settings.run_as
    }

    fn turn_started(&self, session: SessionId, turn: u64) {
        self.teams.turn_started(session, turn);
    }

    fn turn_ended(&self, session: SessionId, turn: u64, ok: bool, text: Option<String>) {
        self.teams.turn_ended(session, turn, ok, text);
    }

    fn session_gone(&self, session: SessionId) {
        self.teams.session_gone(session);
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
