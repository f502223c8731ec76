//! The command line and environment of an agent, from the facts of its session.

use std::{
    collections::BTreeMap,
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use base::Secret;
use process::User;
use protocol::workspace::{SessionId, TeamId};
use session::agent::{AcpCommand, Dialect, Launch, McpServer, Settings, interactive, open};

use super::{
    args::{self, Args},
    gateway::{Model, SessionKey},
    private::Private,
    programs::Search,
};
use crate::{host::EngineHost, refusal::Refusal, sessions::Facts, settings::AgentSettings, users};

/// The command line and environment of an agent, as far as they are known before the start.
pub(crate) struct Plan {
    pub(crate) facts: Facts,
    pub(crate) private: Private,
    /// The user that the agent runs as; `None`: the daemon's own user.
    pub(crate) run_as: Option<User>,
    program: PathBuf,
    args: Args,
    model: Model,
    acp: Vec<AcpCommand>,
    /// Variables for the agent: those of the project, and a `PATH` that leads to the program.
    env: Vec<(String, String)>,
}

impl Plan {
    /// Makes the plan, and refuses an agent that could not be started. It blocks: it looks at a few
    /// files, and looks up the user if one is named.
    pub(crate) fn new(host: &EngineHost, facts: &Facts) -> Result<Self, Refusal> {
        Self::with(host, facts, Private::new)
    }

    /// The plan of an agent that runs already. The agent's private files stay.
    pub(crate) fn of_running(host: &EngineHost, facts: &Facts) -> Result<Self, Refusal> {
        Self::with(host, facts, Private::of_running)
    }

    fn with(
        host: &EngineHost,
        facts: &Facts,
        private: fn(&Path, SessionId, Option<User>) -> Private,
    ) -> Result<Self, Refusal> {
        let settings = &host.settings;
        let run_as = users::find(&settings.run_as, facts.run_as_user.as_deref())?;
        let project = facts.project_id.and_then(|id| host.projects.get(id).ok());
        let env = project.map(|project| project.env).unwrap_or_default();
        let acp = configured(&settings.agents);
        let program = program(&settings.agents, facts, &acp, run_as.as_ref(), &env)?;
        let plan = Self {
            private: private(&settings.dir, facts.id, run_as.clone()),
            args: args::read(&facts.extra_args)?,
            model: Model::of(&settings.agents, facts)?,
            env: environment(env, &program),
            facts: facts.clone(),
            run_as,
            program,
            acp,
        };
        // Opened only to find out whether the dialect accepts these settings.
        let settings = plan.settings(host, None, Vec::new())?;
        open(&facts.provider, &plan.acp, settings).map_err(|bad| Refusal::failed(&bad))?;
        Ok(plan)
    }

    /// The agent's dialect, and a key for this server's models that must live as long as the
    /// dialect. The caller names the team, because the session may have joined it after the plan
    /// was made.
    pub(crate) fn dialect(
        &self,
        host: &EngineHost,
        team: Option<TeamId>,
    ) -> Result<(Box<dyn Dialect>, Option<SessionKey>), Refusal> {
        let key = self.key(host);
        let settings = self.settings(host, key.as_ref(), self.team(host, team))?;
        let dialect = open(&self.facts.provider, &self.acp, settings);
        Ok((dialect.map_err(|bad| Refusal::failed(&bad))?, key))
    }

    /// The dialect of an agent that runs already, with the key that it has.
    pub(crate) fn running_dialect(
        &self,
        host: &EngineHost,
        key: Option<Secret>,
    ) -> Result<(Box<dyn Dialect>, Option<SessionKey>), Refusal> {
        let key = key.and_then(|secret| self.earlier_key(host, secret));
        // The process got its MCP servers when it was started.
        let settings = self.settings(host, key.as_ref(), Vec::new())?;
        let dialect = open(&self.facts.provider, &self.acp, settings);
        Ok((dialect.map_err(|bad| Refusal::failed(&bad))?, key))
    }

    /// The command line of the agent's own interface, for a person at a terminal, and its key.
    pub(crate) fn interactive(
        &self,
        host: &EngineHost,
    ) -> Result<(Launch, Option<SessionKey>), Refusal> {
        let key = self.key(host);
        let settings = self.settings(host, key.as_ref(), self.team(host, self.facts.team_id))?;
        let launch = interactive(&self.facts.provider, settings);
        Ok((launch.map_err(|bad| Refusal::failed(&bad))?, key))
    }

    /// The key that the agent has from an earlier daemon.
    pub(crate) fn earlier_key(&self, host: &EngineHost, secret: Secret) -> Option<SessionKey> {
        let Model::Ours(model) = &self.model else { return None };
        Some(SessionKey::with_secret(host, self.facts.id, model, secret))
    }

    /// The variables that are added to the process's clean environment. The launch's variables come
    /// last, so they win.
    pub(crate) fn env(&self, launch: &Launch) -> Vec<(String, String)> {
        self.env.iter().chain(&launch.env).cloned().collect()
    }

    /// Adds variables, which come after the project's and so win.
    pub(crate) fn add_env(&mut self, env: impl IntoIterator<Item = (String, String)>) {
        self.env.extend(env);
    }

    fn key(&self, host: &EngineHost) -> Option<SessionKey> {
        let Model::Ours(model) = &self.model else { return None };
        Some(SessionKey::new(host, self.facts.id, model))
    }

    fn team(&self, host: &EngineHost, team: Option<TeamId>) -> Vec<McpServer> {
        team.map(|team| host.team_server(team, self.facts.id)).into_iter().collect()
    }

    fn settings(
        &self,
        host: &EngineHost,
        key: Option<&SessionKey>,
        mcp_servers: Vec<McpServer>,
    ) -> Result<Settings, Refusal> {
        let (model, gateway) = match (&self.model, key) {
            (Model::Makers(model), _) => (model.clone(), None),
            (Model::Ours(model), None) => (Some(model.clone()), None),
            (Model::Ours(model), Some(key)) => (None, Some(key.gateway(&host.gateway, model)?)),
        };
        Ok(Settings {
            program: Some(text(&self.program)?),
            working_dir: self.facts.working_dir.clone(),
            private_dir: self.private.path()?,
            model,
            extra_args: self.args.rest.clone(),
            permissions: self.args.permissions,
            mcp_servers,
            gateway,
            used: self.facts.used.unwrap_or_default(),
        })
    }
}

/// The agents that the configuration adds.
fn configured(settings: &AgentSettings) -> Vec<AcpCommand> {
    let commands = settings.acp.iter().filter_map(|(name, line)| {
        let (command, args) = line.split_first()?;
        let (name, command) = (name.clone(), command.clone());
        Some(AcpCommand { name, command, args: args.to_vec(), env: Vec::new() })
    });
    commands.collect()
}

fn program(
    settings: &AgentSettings,
    facts: &Facts,
    acp: &[AcpCommand],
    run_as: Option<&User>,
    env: &BTreeMap<String, String>,
) -> Result<PathBuf, Refusal> {
    let home = users::home(run_as)?;
    let search =
        Search { set: &settings.programs, path: env.get("PATH").map(OsStr::new), home: &home };
    match acp.iter().find(|command| command.name == facts.provider) {
        Some(command) => search.configured(&command.name, &command.command),
        None => search.known(&facts.provider),
    }
}

/// The project's variables, with a `PATH` that contains the program's directory: a program that is
/// a script finds its interpreter there.
fn environment(env: BTreeMap<String, String>, program: &Path) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = env.into_iter().collect();
    let set = env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| OsString::from(path));
    let path = set.or_else(|| env::var_os("PATH"));
    if let Some(path) = path.and_then(|path| with(&path, program.parent()?)) {
        env.push(("PATH".to_owned(), path));
    }
    env
}

/// The `PATH` with this directory at its end; `None` if the directory is in it already.
fn with(path: &OsStr, dir: &Path) -> Option<String> {
    let mut places: Vec<PathBuf> = env::split_paths(path).collect();
    if places.iter().any(|place| place == dir) {
        return None;
    }
    places.push(dir.to_owned());
    env::join_paths(places).ok()?.into_string().ok()
}

fn text(path: &Path) -> Result<String, Refusal> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Refusal::Failed(format!("the path {} is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_in_its_own_path() {
        let program = Path::new("/home/a/.local/bin/claude");
        let of = |path: &str| environment([("PATH".into(), path.into())].into(), program);
        let added = of("/usr/bin").pop().unwrap();
        assert_eq!(added, ("PATH".to_owned(), "/usr/bin:/home/a/.local/bin".to_owned()));
        assert_eq!(of("/home/a/.local/bin:/usr/bin").len(), 1, "nothing to be added");
    }
}
