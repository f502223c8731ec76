//! Making a session: its facts, its folder and its user; then its engine.

use std::sync::Arc;

use jiff::Timestamp;
use protocol::workspace::{
    SessionId, SessionInfo, SessionKind, SessionMode,
    session::{DEFAULT_PROVIDER, DEV_SERVER_TAG},
};
use session::terminal::size::Size;
use tracing::Instrument as _;

use super::Sessions;
use crate::{
    projects::{self, Projects},
    refusal::Refusal,
    sessions::{
        clock::now,
        engine_starter::EngineStarter,
        feed::Feed,
        life::facts::Facts,
        new::{NewEngine, NewSession},
        session::Session,
    },
    users,
};

impl Sessions {
    /// Makes a session, starts its engine and stores its facts.
    pub async fn create(&self, new: NewSession) -> Result<SessionInfo, Refusal> {
        self.create_as(SessionId::from_random(rand::random()), new).await
    }

    /// The same with an id that was chosen before.
    pub async fn create_as(&self, id: SessionId, new: NewSession) -> Result<SessionInfo, Refusal> {
        if self.has(id) {
            return Err(Refusal::Invalid(format!("there is a session {id} already")));
        }
        let engines = self.engines()?;
        let size = size(new.size)?;
        let facts = facts(&self.0.projects, id, new).await?;
        // Before the session is in the list: without a model there is nothing to take back.
        engines.find_model(&facts).await?;
        let session = self.add(facts, size)?;
        let started = start(&session, &*engines, size).await;
        let stored = match started {
            Ok(()) => self.0.shared.keeper.keep(&session).await,
            Err(refusal) => Err(refusal),
        };
        match stored {
            Ok(()) => {
                session.announce(now());
                Ok(session.info())
            }
            Err(refusal) => {
                self.give_up(&session).await;
                Err(refusal)
            }
        }
    }

    /// Removes all traces of a session that could not be made.
    async fn give_up(&self, session: &Arc<Session>) {
        self.remove(session.id);
        if let Some(engine) = session.engine.get() {
            engine.stop().await;
        }
        if let Err(refusal) = session.forget().await {
            tracing::error!(session = %session.id, %refusal, "cannot forget what was not made");
        }
    }
}

/// Starts the engine of a session, for the first time since the daemon started.
pub(super) async fn start(
    session: &Arc<Session>,
    engines: &dyn EngineStarter,
    size: Size,
) -> Result<(), Refusal> {
    let facts = session.lock().life.facts.clone();
    let starting = engines.start(facts, size, Feed::new(session));
    let (engine, start_time) = starting.instrument(session.span.clone()).await?;
    if let (Some((_, at)), Some(start_time)) = (&mut session.lock().life.facts.adopted, start_time)
    {
        *at = start_time;
    }
    let _first = session.engine.set(engine);
    Ok(())
}

fn size(wanted: Option<(u16, u16)>) -> Result<Size, Refusal> {
    let size = wanted.map(|(cols, rows)| Size::new(cols, rows)).transpose();
    let size = size.map_err(|refused| Refusal::failed(&refused))?;
    Ok(size.unwrap_or(Size::DEFAULT))
}

/// Checks a new session, and returns its facts.
async fn facts(projects: &Projects, id: SessionId, new: NewSession) -> Result<Facts, Refusal> {
    let (working_dir, run_as_user) = directory_and_user(projects, &new).await?;
    let is_server = new.tags.iter().any(|tag| tag == DEV_SERVER_TAG);
    let EngineFacts { mode, kind, provider, model, extra_args, pid } =
        EngineFacts::of(new.engine, is_server)?;
    let now = Timestamp::now();
    Ok(Facts {
        id,
        name: new.name,
        mode,
        kind,
        working_dir,
        model,
        created_at: now,
        last_active: now,
        project_id: new.project_id,
        provider,
        extra_args,
        hidden: new.hidden || (is_server && mode == SessionMode::Pty),
        tags: new.tags,
        team_id: new.team.map(|(team, _)| team),
        is_team_leader: new.team.is_some_and(|(_, leader)| leader),
        run_as_user,
        conversation: None,
        used: None,
        turn: 0,
        waiting: Vec::new(),
        prompt_ids: Default::default(),
        adopted: pid.map(|pid| (pid, 0)),
        transcript: None,
        ended: None,
        exit_code: None,
    })
}

/// The directory and the user of a new session: its own, or else its project's.
async fn directory_and_user(
    projects: &Projects,
    new: &NewSession,
) -> Result<(String, Option<String>), Refusal> {
    let project = new.project_id.map(|id| projects.get(id)).transpose()?;
    let of_project = project.as_ref().and_then(|project| project.run_as_user.clone());
    let run_as_user = new.run_as_user.clone().or(of_project);
    let user = users::user(projects.run_as(), run_as_user.as_deref()).await?;
    let dir = match (&*new.working_dir, &project) {
        ("", Some(project)) => &project.working_dir,
        ("", None) => return Err(Refusal::invalid("working_dir is missing: say where to start")),
        (dir, _) => dir,
    };
    let dir = projects::working_dir(dir, user.as_ref()).await?;
    Ok((projects::path_text(&dir)?, run_as_user))
}

/// The facts about a session that follow from its engine.
struct EngineFacts {
    mode: SessionMode,
    kind: SessionKind,
    provider: String,
    model: Option<String>,
    extra_args: Vec<String>,
    pid: Option<u32>,
}

impl EngineFacts {
    /// `is_server`: whether the session is a development server.
    fn of(engine: NewEngine, is_server: bool) -> Result<Self, Refusal> {
        Ok(match engine {
            NewEngine::Interactive { extra_args, .. } if is_server => {
                Self::of_command(command_line(extra_args)?)
            }
            NewEngine::Shell { command, .. } if command.is_empty() => {
                return Err(Refusal::invalid("command is empty: say what to run"));
            }
            NewEngine::Shell { command, args } => {
                Self::of_command(SessionKind::Shell { command, args })
            }
            NewEngine::Interactive { provider, model, extra_args } => {
                Self::of_agent(SessionMode::Pty, provider, model, extra_args)
            }
            NewEngine::Agent { provider, model, extra_args } => {
                Self::of_agent(SessionMode::Sdk, provider, model, extra_args)
            }
            NewEngine::Adopted { pid } => Self {
                mode: SessionMode::Adopted,
                pid: Some(pid),
                ..Self::of_command(SessionKind::Claude)
            },
        })
    }

    /// Of a program that is no agent of this workspace.
    fn of_command(kind: SessionKind) -> Self {
        let provider = DEFAULT_PROVIDER.to_owned();
        let (model, extra_args, pid) = (None, Vec::new(), None);
        Self { mode: SessionMode::Pty, kind, provider, model, extra_args, pid }
    }

    fn of_agent(
        mode: SessionMode,
        provider: String,
        model: Option<String>,
        extra_args: Vec<String>,
    ) -> Self {
        let kind = SessionKind::of_provider(&provider);
        Self { mode, kind, provider, model, extra_args, pid: None }
    }
}

/// The command line of a development server.
fn command_line(words: Vec<String>) -> Result<SessionKind, Refusal> {
    let mut words = words.into_iter();
    let command = words.next().filter(|command| !command.is_empty());
    let command = command.ok_or_else(|| {
        Refusal::invalid(
            "extra_args is empty: with the tag dev-server it is the command line to run",
        )
    })?;
    Ok(SessionKind::Shell { command, args: Some(words.collect()) })
}
