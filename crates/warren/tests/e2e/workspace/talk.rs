//! A server whose agents are fakes, and a talk with one of them.

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    Serve,
    agents::{FakeAgents, NAMES, program},
    workspace::{Mark, WorkspaceClient},
};

use super::kit::{Viewer, WorkspaceHost, id_of, serving};

/// A server whose agents are fakes: every dialect has its own, as the provider of its name.
pub(super) struct Agents {
    pub(super) place: WorkspaceHost,
    pub(super) dir: TempDir,
}

impl Agents {
    pub(super) async fn start() -> Self {
        Self::with("").await
    }

    /// With these settings of `[workspace.agents]`, too.
    pub(super) async fn with(more: &str) -> Self {
        Self::of(serving(), more).await
    }

    /// Of this server, which it starts.
    pub(super) async fn of(serve: Serve, more: &str) -> Self {
        let dir = TempDir::new().expect("a directory");
        let fakes = FakeAgents::install(&program(), &dir.path().join("bin"));
        let config = dir.path().join("warren.toml");
        std::fs::write(&config, settings(&fakes, more)).expect("it can be written");
        let serve = serve.set("--config", config.to_str().expect("text"));
        Self { place: WorkspaceHost::of(serve).await, dir }
    }

    /// Where the fakes are, which their processes' command lines have.
    pub(super) fn mark(&self) -> Mark {
        Mark::of(self.dir.path().join("bin").to_str().expect("text"))
    }

    /// Makes a session with the agent of this name; its id.
    pub(super) async fn agent(&self, client: &mut WorkspaceClient, provider: &str) -> String {
        let new = json!({
            "type": "new_session", "working_dir": self.place.dir(), "mode": "sdk",
            "provider": provider, "name": provider,
        });
        id_of(&client.ask(new, "session_created").await["session"])
    }

    /// The same, and looks at it.
    pub(super) async fn talk(&self, provider: &str) -> Viewer {
        let mut client = self.place.client().await;
        let id = self.agent(&mut client, provider).await;
        Viewer::of(client, &id).await
    }
}

fn settings(fakes: &FakeAgents, more: &str) -> String {
    let path = |name: &str| -> PathBuf { fakes.path(name) };
    let mut text = format!("[workspace.agents]\n{more}\n[workspace.agents.programs]\n");
    for name in NAMES.iter().filter(|name| **name != "acp") {
        text.push_str(&format!("{name} = {:?}\n", path(name)));
    }
    text + &format!("[workspace.agents.acp]\nacp = [{:?}]\n", path("acp"))
}

/// An agent's answer in a turn, and how that ended.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) text: String,
    pub(super) outcome: String,
    pub(super) error: Value,
    pub(super) events: Vec<Value>,
}

impl Viewer {
    /// One turn, to its end.
    pub(super) async fn turn(&mut self, prompt: &str) -> Turn {
        self.prompts(prompt).await;
        self.turn_ends().await
    }

    /// The rest of a turn.
    pub(super) async fn turn_ends(&mut self) -> Turn {
        let mut said = Turn {
            text: String::new(),
            outcome: String::new(),
            error: Value::Null,
            events: Vec::new(),
        };
        loop {
            let event = self.told("agent_event").await["event"].clone();
            let text = |field: &str| event[field].as_str().unwrap_or_default();
            match text("kind") {
                "text" => said.text.push_str(text("text")),
                "turn_ended" => {
                    said.outcome = text("outcome").to_owned();
                    said.error = event["error"].clone();
                    said.events.push(event);
                    return said;
                }
                _ => {}
            }
            said.events.push(event);
        }
    }
}
