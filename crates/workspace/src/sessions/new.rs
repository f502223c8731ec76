//! The description of a new session.

use jiff::Timestamp;
use protocol::workspace::{
    ProjectId, SessionId, SessionKind, SessionMode, TeamId,
    session::{DEFAULT_PROVIDER, DEV_SERVER_TAG},
};

use super::life::facts::Facts;
use crate::refusal::Refusal;

/// The description of a session to be made. The caller has checked that the client may request all of this.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Its engine.
    pub engine: NewEngine,
    /// Its name.
    pub name: Option<String>,
    /// Its directory; empty: the project's.
    pub working_dir: String,
    /// Its project.
    pub project_id: Option<ProjectId>,
    /// Overrides the project's user.
    pub run_as_user: Option<String>,
    /// Whether only its viewers get its events, and lists leave it out.
    pub hidden: bool,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its team, and whether the session is the team's leader.
    pub team: Option<(TeamId, bool)>,
    /// The columns and rows of its terminal; `None`: the usual ones.
    pub size: Option<(u16, u16)>,
}

impl NewSession {
    /// A session with an engine and a directory, and nothing else set.
    pub const fn new(engine: NewEngine, working_dir: String) -> Self {
        Self {
            engine,
            name: None,
            working_dir,
            project_id: None,
            run_as_user: None,
            hidden: false,
            tags: Vec::new(),
            team: None,
            size: None,
        }
    }

    /// The facts of the session in this directory, with this user.
    ///
    /// # Errors
    /// A refusal if it has no command to run.
    pub fn facts(
        self,
        id: SessionId,
        working_dir: String,
        run_as_user: Option<String>,
    ) -> Result<Facts, Refusal> {
        let is_server = self.tags.iter().any(|tag| tag == DEV_SERVER_TAG);
        let EngineFacts { mode, kind, provider, model, extra_args, pid } =
            EngineFacts::of(self.engine, is_server)?;
        let now = Timestamp::now();
        Ok(Facts {
            id,
            name: self.name,
            mode,
            kind,
            working_dir,
            model,
            created_at: now,
            last_active: now,
            project_id: self.project_id,
            provider,
            extra_args,
            hidden: self.hidden || (is_server && mode == SessionMode::Pty),
            tags: self.tags,
            team_id: self.team.map(|(team, _)| team),
            is_team_leader: self.team.is_some_and(|(_, leads)| leads),
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
}

/// The engine of a new session.
#[derive(Debug, Clone)]
pub enum NewEngine {
    /// A terminal running any command (`open_terminal`).
    Shell {
        /// The program.
        command: String,
        /// Its arguments.
        args: Option<Vec<String>>,
    },
    /// An agent's own interactive interface in a terminal (mode `pty`). With the tag `dev-server`,
    /// a terminal running the command line in `extra_args`.
    Interactive {
        /// The agent's name.
        provider: String,
        /// The model; `None`: the one of the settings.
        model: Option<String>,
        /// Further arguments.
        extra_args: Vec<String>,
    },
    /// An agent driven turn by turn (mode `sdk`).
    Agent {
        /// The agent's name.
        provider: String,
        /// The model; `None`: the one of the settings.
        model: Option<String>,
        /// Further arguments.
        extra_args: Vec<String>,
    },
    /// A process that runs already (mode `adopted`).
    Adopted {
        /// Its process id.
        pid: u32,
    },
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

    /// The facts for a program that is no agent of this workspace.
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
