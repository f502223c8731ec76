//! A server whose workspace runs a real agent.

use std::path::{Path, PathBuf};

use base::Secret;
use client::{Workspace, workspace::Address};
use protocol::{
    admin::usage::{UsageCounts, UsageReport},
    workspace::{
        ProjectId, SessionId,
        client::{Assign, CreateProject, CreateTeam, NewSession, TeamWait, WorkerResult},
    },
};
use tempfile::TempDir;
use testkit::{ChatScript, MockBackend, eventually};

use super::talk::Talk;
use crate::{
    house::{self, House, binary},
    llama_cpp,
    program::{DEADLINE, HERE, Program, installed},
};

/// The token that clients of the workspace show: an administrator's.
const TOKEN: &str = "the-token-of-this-workspace";

/// The name of the project that all sessions belong to: its environment keeps agents here.
const PROJECT: &str = "here";

/// An agent's command line, as `cargo xtask clients` has installed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Agent {
    /// The provider.
    pub(super) provider: &'static str,
    /// The name that it is installed as.
    pub(super) part: &'static str,
    /// Its command.
    pub(super) program: &'static str,
}

impl Agent {
    fn path(self) -> PathBuf {
        installed(self.part).join("node_modules/.bin").join(self.program)
    }
}

/// A session of an agent answers at the command line.
pub(super) async fn answers_at_the_command_line(agent: Agent) {
    let (desk, _backend) = Desk::chat(agent, ChatScript::new()).await;
    let said = desk.answers("warren:chat", "clover").await;
    assert!(said.contains("You said:") && said.contains("clover"), "{said}");
}

/// A turn with the tiny model is answered, and counted by the session's own key.
pub(super) async fn thinks_and_is_counted(agent: Agent, args: &[&str]) {
    let desk = Desk::tiny(agent).await;
    let mut talk = desk.talk_with(agent.provider, "tiny", args).await;
    let turn = talk.answer("hello there").await;
    assert!(!turn.text.is_empty() && turn.usage.output_tokens > 0, "{turn:?}");
    let booked = desk.booked(talk.id).await;
    assert!(booked.prompt_tokens > 0 && booked.completion_tokens > 0, "{booked:?}");
    assert_eq!(booked.errors, 0);
}

/// A server with a workspace for one kind of agent, and a home for that.
pub(super) struct Desk {
    pub(super) house: House,
    agent: Agent,
    home: TempDir,
    project: ProjectId,
    /// The tiny model, where it is that one.
    _model: Option<llama_cpp::Server>,
}

impl Desk {
    /// With a model that has nothing but Chat Completions, and keeps to a script.
    pub(super) async fn chat(agent: Agent, script: ChatScript) -> (Self, MockBackend) {
        let backend = script.start().await;
        let desk = Self::of(agent, (&backend.url(), "chat"), "", &[]).await;
        (desk, backend)
    }

    /// With a model of random weights behind a real model server, and all agents told to use it.
    pub(super) async fn tiny(agent: Agent) -> Self {
        let model = llama_cpp::Server::start(&["--ends-after", "40"]).await;
        let lent = (&*model.url, llama_cpp::MODEL);
        let mut desk = Self::of(agent, lent, "use_gateway = true", &[]).await;
        desk._model = Some(model);
        desk
    }

    /// With a backend that lends a model, settings of `[workspace.agents]`, and further variables for
    /// agents.
    pub(super) async fn of(
        agent: Agent,
        (backend, model): (&str, &str),
        settings: &str,
        env: &[(&str, &str)],
    ) -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("work")).unwrap();
        let config = home.path().join("warren.toml");
        let program = format!("{} = {:?}", agent.program, agent.path());
        let settings =
            format!("[workspace.agents]\n{settings}\n[workspace.agents.programs]\n{program}\n");
        std::fs::write(&config, settings).unwrap();
        let serve = house::serve().set("--workspace-token", TOKEN);
        let serve = serve.set("--config", config.to_str().unwrap());
        let house = House::of(serve, &["--backend", backend], model).await;
        let project = project(&house, home.path(), env).await;
        Self { house, agent, home, project, _model: None }
    }

    /// A connection to the workspace.
    pub(super) async fn client(&self) -> Workspace {
        Workspace::connect(&self.address()).await.unwrap()
    }

    /// A new session with this model, and a talk with its agent.
    pub(super) async fn talk(&self, model: &str) -> Talk {
        self.talk_with(self.agent.provider, model, &[]).await
    }

    /// The same, of another provider, and with further arguments.
    pub(super) async fn talk_with(&self, provider: &str, model: &str, args: &[&str]) -> Talk {
        let new = self.asked(provider, model, args);
        let session = self.client().await.new_session(new).await.unwrap();
        self.again(session.id).await
    }

    pub(super) fn asked(&self, provider: &str, model: &str, args: &[&str]) -> NewSession {
        NewSession {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            project_id: Some(self.project),
            extra_args: Some(owned(args)),
            ..NewSession::default()
        }
    }

    /// A talk with the agent of a session that is there.
    pub(super) async fn again(&self, session: SessionId) -> Talk {
        Talk::begin(self.client().await, &self.address(), session).await
    }

    /// Gives work to a team worker of this model, and waits for its report.
    pub(super) async fn reports(
        &self,
        model: &str,
        prompt: &str,
        args: &[&str],
    ) -> (SessionId, WorkerResult) {
        let mut client = self.client().await;
        let made = client.create_team(self.team(model, args)).await.unwrap();
        let (team_id, prompt) = (made.team.id, prompt.to_owned());
        let work = Assign {
            team_id,
            prompt,
            worker_name: None,
            provider: None,
            mode: None,
            working_dir: None,
            node_id: None,
        };
        let worker = client.assign(work).await.unwrap().worker_session_id;
        let wait = TeamWait {
            team_id,
            for_session_ids: Some(vec![worker]),
            timeout_ms: Some(base::millis(DEADLINE)),
            wait_id: None,
        };
        let mut reported = client.team_wait(wait).await.unwrap();
        let result = reported.results.pop().unwrap_or_else(|| panic!("{reported:?}"));
        assert_eq!(result.worker_session_id, worker);
        (worker, result)
    }

    fn team(&self, model: &str, args: &[&str]) -> CreateTeam {
        CreateTeam {
            name: "team".to_owned(),
            model: Some(model.to_owned()),
            extra_args: Some(owned(args)),
            project_id: Some(self.project),
            provider: Some(self.agent.provider.to_owned()),
            ..CreateTeam::default()
        }
    }

    /// Runs `warren` with these arguments against it, as a person would; what it prints.
    pub(super) async fn runs(&self, words: &[&str], args: &[&str]) -> String {
        let url = self.house.daemon.url();
        let access = ["--server", &url, "--token", TOKEN];
        let program = Program::new(binary()).args([words, &access, args].concat());
        program.run().await.well()
    }

    /// The same, of `warren session new` with a prompt; the answer.
    pub(super) async fn answers(&self, model: &str, prompt: &str) -> String {
        let args = ["--provider", self.agent.provider, "--model", model, "--project", PROJECT];
        let prompt = ["--prompt", prompt, "--wait"];
        self.runs(&["session", "new"], &[&args[..], &prompt].concat()).await
    }

    /// Kills the server and starts it again; what it lent is there again.
    pub(super) async fn restart_server(&mut self, model: &str) {
        self.house.daemon.kill_and_restart().await;
        self.house.offers(model).await;
    }

    /// Where agents work.
    pub(super) fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// Whether Claude Code has written a word into one of its conversations.
    pub(super) fn keeps(&self, word: &str) -> bool {
        let projects = files_below(&self.home.path().join(".claude/projects"));
        let texts = projects.iter().filter_map(|path| std::fs::read_to_string(path).ok());
        texts.into_iter().any(|text| text.contains(word))
    }

    /// Writes a file below the agents' home.
    pub(super) fn file(&self, path: &str, content: &str) {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// The usage that was counted for the session's own key, once there is some.
    pub(super) async fn booked(&self, session: SessionId) -> UsageCounts {
        let is_there = async || self.counted(session).await.is_some();
        eventually("a row in the ledger", DEADLINE, is_there).await;
        self.counted(session).await.unwrap()
    }

    async fn counted(&self, session: SessionId) -> Option<UsageCounts> {
        let report = self.house.daemon.admin().get("/admin/usage?by=key").await;
        let report: UsageReport = serde_json::from_value(report.json()).unwrap();
        let whose = format!("session:{session}");
        report.rows.into_iter().find(|row| row.key.as_ref() == Some(&whose)).map(|row| row.counts)
    }

    fn address(&self) -> Address {
        address(&self.house)
    }
}

/// Waits until a backend is told all of this at once: the conversation goes on.
pub(super) async fn has_been_told(backend: &MockBackend, words: &[&str]) {
    loop {
        let received = backend.request().await;
        let body = String::from_utf8_lossy(&received.body).into_owned();
        if words.iter().all(|word| body.contains(word)) {
            return;
        }
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn owned(args: &[&str]) -> Vec<String> {
    args.iter().map(|&arg| arg.to_owned()).collect()
}

fn address(house: &House) -> Address {
    Address::new(&house.daemon.url(), Some(&Secret::from(TOKEN))).unwrap()
}

/// Everything that an agent gets beside the workspace's own is its project's: a home without anything
/// of this machine's, and no way out but loopback.
async fn project(house: &House, home: &Path, env: &[(&str, &str)]) -> ProjectId {
    let mut all = vec![("HOME", home.to_str().unwrap())];
    all.extend(HERE);
    all.extend(env);
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let new = CreateProject {
        name: PROJECT.to_owned(),
        working_dir: home.join("work").to_str().unwrap().to_owned(),
        env: all.into_iter().map(pair).collect(),
        ..CreateProject::default()
    };
    let mut client = Workspace::connect(&address(house)).await.unwrap();
    client.create_project(new).await.unwrap().id
}
