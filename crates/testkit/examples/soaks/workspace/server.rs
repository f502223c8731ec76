//! The server, and ways to it.

use std::{net::SocketAddr, path::Path, sync::Mutex, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{
    Daemon, Random, Serve,
    agents::FakeAgents,
    workspace::{Cutter, Knock, ServerMessage, WorkspaceClient},
};
use tokio::time::timeout;

use crate::workspace::{Settings, sessions::Sessions};

const TOKEN: &str = "the-token-of-this-soak";
/// The most bytes of a connection that is cut.
const MOST: u64 = 60_000;
/// No answer takes longer, however busy the machine is.
const ANSWER: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    pub(crate) daemon: tokio::sync::Mutex<Daemon>,
    pub(crate) address: SocketAddr,
    /// A proxy to it that cuts connections.
    pub(crate) way: Cutter,
    pub(crate) sessions: Mutex<Sessions>,
    pub(crate) agents: Option<FakeAgents>,
    dir: TempDir,
}

impl Server {
    pub(crate) async fn start(settings: &Settings, random: &mut Random) -> Self {
        let dir = TempDir::new().expect("a directory");
        let agents = settings.agents.as_deref();
        let agents = agents.map(|program| FakeAgents::install(program, &dir.path().join("bin")));
        let config = dir.path().join("warren.toml");
        std::fs::write(&config, configuration(agents.as_ref())).expect("it can be written");
        let serve = Serve::new(&settings.trial.binary).set("--workspace-token", TOKEN);
        let daemon = serve.set("--config", config.to_str().expect("text")).start().await;
        let address = daemon.address();
        let way = Cutter::to(address, random.next(), MOST).await;
        let (daemon, sessions) = (tokio::sync::Mutex::new(daemon), Mutex::default());
        Self { daemon, address, way, sessions, agents, dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn dir(&self) -> String {
        self.path().display().to_string()
    }

    /// An authenticated client; `None` when the connection fails or is cut.
    pub(crate) async fn client(&self, knock: Knock) -> Option<WorkspaceClient> {
        let mut client = knock.open().await.ok()?;
        client.say(json!({"type": "auth", "token": TOKEN})).await;
        let told = timeout(ANSWER, client.next_ever()).await.ok()??;
        (told.as_message("auth_result")?["success"] == true).then_some(client)
    }

    /// Asks on a connection of its own.
    pub(crate) async fn ask(&self, message: Value, kind: &str) -> Result<Value, String> {
        let client = self.client(Knock::at(self.address)).await;
        let mut client = client.ok_or("no connection came about")?;
        ask(&mut client, message, kind).await
    }

    pub(crate) async fn listed(&self) -> Result<Vec<Value>, String> {
        let list = json!({"type": "list_sessions", "include_hidden": true});
        let list = self.ask(list, "session_list").await?;
        list["sessions"].as_array().cloned().ok_or_else(|| format!("no list: {list}"))
    }
}

/// Asks on this connection. No other task may read from it.
pub(crate) async fn ask(
    client: &mut WorkspaceClient,
    message: Value,
    kind: &str,
) -> Result<Value, String> {
    let what = message["type"].clone();
    client.say(message).await;
    let answered = async {
        loop {
            match client.next_ever().await {
                Some(ServerMessage::Message(told)) if told["type"] == kind => return Ok(told),
                Some(ServerMessage::Message(told)) if told["type"] == "error" => {
                    return Err(format!("{what} was answered with {told}"));
                }
                Some(ServerMessage::Message(told)) if told["type"] == "session_unknown" => {
                    return Err(format!("{what} was answered with {told}"));
                }
                Some(_) => {}
                None => return Err(format!("{what} was not answered: the connection ended")),
            }
        }
    };
    let late = |_| Err(format!("{what} was not answered in {ANSWER:?}"));
    timeout(ANSWER, answered).await.unwrap_or_else(late)
}

fn configuration(agents: Option<&FakeAgents>) -> String {
    let Some(agents) = agents else { return String::new() };
    let mut text = "[workspace.agents.programs]\n".to_owned();
    for name in ["claude", "codex", "gemini", "opencode"] {
        text.push_str(&format!("{name} = {:?}\n", agents.path(name)));
    }
    text + &format!("[workspace.agents.acp]\nacp = [{:?}]\n", agents.path("acp"))
}
