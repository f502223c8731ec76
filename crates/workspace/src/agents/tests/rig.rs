//! A workspace with the fake command lines, and a client that watches a session.

use std::time::Duration;

use protocol::workspace::{
    AgentEvent, ServerMessage, SessionId, TurnOutcome,
    client::{PermissionRequest, Usage},
    frame,
};
use testkit::{
    DEADLINE,
    agents::{FakeAgents, program},
    eventually,
};

use crate::{
    Workspace,
    identity::ClientId,
    refusal::Refusal,
    sessions::{Attachment, NewEngine, NewSession, StreamItem},
    testing::{Site, soon},
};

/// A workspace with the fake command lines.
pub(crate) struct Rig {
    pub(crate) site: Site,
    pub(crate) agents: FakeAgents,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let mut site = Site::new();
        let agents = FakeAgents::install(&program(), &site.dir.path().join("agents"));
        site.settings.agents.programs = agents.all();
        let acp = vec!["acp".to_owned(), "--stdio".to_owned()];
        site.settings.agents.acp.insert("own".to_owned(), acp);
        site.settings.agents.programs.insert("own".to_owned(), agents.path("acp"));
        // An agent that hangs does so for ever here, unless a test sets shorter times.
        site.settings.agents.silence = Duration::from_secs(3600);
        site.settings.agents.permission = Duration::from_secs(3600);
        Self { site, agents }
    }

    pub(crate) async fn start() -> (Self, Workspace) {
        let rig = Self::new();
        let workspace = rig.site.start().await;
        (rig, workspace)
    }

    pub(crate) fn new_session(&self, provider: &str) -> NewSession {
        let provider = provider.to_owned();
        let engine = NewEngine::Agent { provider, model: None, extra_args: Vec::new() };
        NewSession { engine, ..self.site.shell("") }
    }
}

pub(crate) async fn create(workspace: &Workspace, new: NewSession) -> Result<SessionId, Refusal> {
    Ok(workspace.sessions.create(new).await?.id)
}

pub(crate) async fn open(workspace: &Workspace, rig: &Rig, provider: &str) -> Watcher {
    let id = create(workspace, rig.new_session(provider)).await.unwrap();
    Watcher::attach(workspace, id)
}

pub(crate) fn prompt(workspace: &Workspace, id: SessionId, text: &str) -> Result<(), Refusal> {
    workspace.sessions.prompt(id, None, text.to_owned(), None).map(drop)
}

/// A client that watches an agent's session.
pub(crate) struct Watcher {
    pub(crate) id: SessionId,
    attachment: Attachment,
    /// The output so far.
    pub(crate) text: String,
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) messages: Vec<ServerMessage>,
    /// How many ended turns it has returned.
    ended: usize,
    is_ready: bool,
}

/// How a turn ended.
#[derive(Debug, PartialEq)]
pub(crate) struct TurnResult {
    pub(crate) turn: u64,
    pub(crate) outcome: TurnOutcome,
    pub(crate) error: Option<String>,
    pub(crate) text: Option<String>,
}

impl Watcher {
    pub(crate) fn attach(workspace: &Workspace, id: SessionId) -> Self {
        let attachment = workspace.sessions.attach(id, ClientId(1), None).unwrap();
        let (text, events, messages) = (String::new(), Vec::new(), Vec::new());
        Self { id, attachment, text, events, messages, ended: 0, is_ready: false }
    }

    async fn step(&mut self) {
        match soon(self.attachment.next()).await.expect("the session is there") {
            StreamItem::Output(frame) => {
                let frame = frame::decode(frame).unwrap();
                self.text.push_str(str::from_utf8(&frame.data).unwrap());
            }
            StreamItem::Message(ServerMessage::AgentEvent(message)) => {
                self.events.push(message.event);
            }
            StreamItem::Message(ServerMessage::SessionHistory(history)) => {
                self.is_ready = true;
                self.text.extend(history.snapshot.map(|snapshot| snapshot.data));
            }
            StreamItem::Message(message) => self.messages.push(message),
        }
    }

    /// Waits until the output contains this text.
    pub(crate) async fn until_shown(&mut self, shown: &str) {
        while !self.text.replace('\r', "").contains(shown) {
            self.step().await;
        }
    }

    /// Waits until the client has its history: it sees everything that happens from then on.
    pub(crate) async fn ready(&mut self) {
        while !self.is_ready {
            self.step().await;
        }
    }

    pub(crate) async fn turn(&mut self, workspace: &Workspace, text: &str) -> TurnResult {
        self.ready().await;
        prompt(workspace, self.id, text).unwrap();
        self.end().await
    }

    /// Prompts, and waits for the final answer of a turn that goes well.
    pub(crate) async fn answer(&mut self, workspace: &Workspace, text: &str) -> String {
        let ended = self.turn(workspace, text).await;
        assert_eq!(ended.outcome, TurnOutcome::Completed, "{ended:?}\n{}", self.text);
        ended.text.unwrap_or_default()
    }

    pub(crate) async fn end(&mut self) -> TurnResult {
        loop {
            let mut ends = self.events.iter().filter_map(ended);
            if let Some(ended) = ends.nth(self.ended) {
                self.ended += 1;
                return ended;
            }
            self.step().await;
        }
    }

    /// Waits for an event.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&AgentEvent) -> bool) {
        while !self.events.iter().any(&wanted) {
            self.step().await;
        }
    }

    /// Waits for a message.
    pub(crate) async fn until_message<T>(
        &mut self,
        wanted: impl Fn(&ServerMessage) -> Option<T>,
    ) -> T {
        loop {
            if let Some(found) = self.messages.iter().find_map(&wanted) {
                return found;
            }
            self.step().await;
        }
    }

    /// Waits for a question.
    pub(crate) async fn question(&mut self) -> PermissionRequest {
        self.until_message(|message| match message {
            ServerMessage::PermissionRequest(question) => Some(question.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the usage of a turn.
    pub(crate) async fn usage(&mut self, turn: u64) -> Usage {
        self.until_message(|message| match message {
            ServerMessage::Usage(usage) if usage.turn == turn => Some(usage.clone()),
            _ => None,
        })
        .await
    }

    /// Forgets all events so far.
    pub(crate) fn forget(&mut self) {
        self.events.clear();
        self.ended = 0;
    }

    /// All notices so far.
    pub(crate) fn notices(&self) -> Vec<&str> {
        let notices = self.events.iter().filter_map(|event| match event {
            AgentEvent::Notice { message } => Some(message.as_str()),
            _ => None,
        });
        notices.collect()
    }
}

fn ended(event: &AgentEvent) -> Option<TurnResult> {
    match event {
        AgentEvent::TurnEnded { turn, outcome, error, text } => Some(TurnResult {
            turn: *turn,
            outcome: *outcome,
            error: error.clone(),
            text: text.clone(),
        }),
        _ => None,
    }
}

/// Waits until a process is gone.
pub(crate) async fn gone(pid: &str) {
    let path = std::path::PathBuf::from(format!("/proc/{pid}"));
    eventually("the process ends", DEADLINE, || async { !path.exists() }).await;
}
