//! Clients that ask agents.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use testkit::{
    Random,
    agents::NAMES,
    workspace::{Follow, Knock, ServerMessage, WorkspaceClient},
};
use tokio::time::{Instant, sleep, timeout};

use crate::workspace::{account::Report, server::Server};

/// No turn of a fake agent takes longer.
const TURN: Duration = Duration::from_secs(60);

/// An agent, and its first prompt.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub(crate) id: String,
    name: &'static str,
}

impl Agent {
    fn word(&self) -> String {
        format!("the first word of {}", self.id)
    }
}

/// One agent of each dialect. Each gets a word to remember.
pub(crate) async fn begin(server: &Server, report: &Report) -> Vec<Agent> {
    let mut agents = Vec::new();
    if server.agents.is_none() {
        return agents;
    }
    for name in NAMES {
        match make(server, name).await {
            Ok(agent) => agents.push(agent),
            Err(wrong) => report.wrong(format!("{name}: {wrong}")),
        }
    }
    agents
}

async fn make(server: &Server, name: &'static str) -> Result<Agent, String> {
    let new = json!({
        "type": "new_session", "working_dir": server.dir(), "mode": "sdk", "provider": name,
    });
    let made = server.ask(new, "session_created").await?;
    let id = made["session"]["id"].as_str().ok_or("a session without an id")?.to_owned();
    let agent = Agent { id, name };
    let mut talk = Talk::with(server, &agent).await?;
    let (word, text) = (agent.word(), talk.turn(&format!("say {}", agent.word())).await?);
    if text != word {
        return Err(format!("it said {text:?} instead of {word:?}"));
    }
    Ok(agent)
}

/// Asks an agent one thing after the other. The last turn is left open.
pub(crate) async fn talk(
    server: Arc<Server>,
    agent: Agent,
    mut random: Random,
    report: Report,
    until: Instant,
) {
    if let Err(wrong) = converse(&server, &agent, &mut random, &report, until).await {
        report.wrong(format!("{}: {wrong}", agent.name));
    }
}

async fn converse(
    server: &Server,
    agent: &Agent,
    random: &mut Random,
    report: &Report,
    until: Instant,
) -> Result<(), String> {
    let mut talk = Talk::with(server, agent).await?;
    while Instant::now() < until {
        let number = random.below(1_000_000);
        let asks = random.chance(0.2) && ["claude", "acp"].contains(&agent.name);
        let (prompt, expected) = match asks {
            true => ("ask Bash".to_owned(), "Bash was allowed".to_owned()),
            false => (
                format!("slow {}; say number {number}", random.below(50)),
                format!("number {number}"),
            ),
        };
        let text = talk.turn(&prompt).await?;
        if text != expected {
            return Err(format!("it answered {prompt:?} with {text:?}"));
        }
        report.tally(|counts| {
            counts.turns += 1;
            counts.questions += u64::from(asks);
        });
        if random.chance(0.2) {
            talk = Talk::with(server, agent).await?;
        }
        sleep(Duration::from_millis(random.below(300))).await;
    }
    talk.prompts("slow 600000").await;
    Ok(())
}

/// After a restart, each agent still knows its word and takes turns.
pub(crate) async fn remember(server: &Server, agents: &mut [Agent], report: &Report) {
    for agent in agents {
        let recalled = async {
            let mut talk = Talk::with(server, agent).await?;
            talk.turn("recall").await
        };
        match recalled.await {
            Ok(text) if text.contains(&agent.word()) => {}
            Ok(text) => report.wrong(format!("{} recalled only {text:?}", agent.name)),
            Err(wrong) => report.wrong(format!("{} after a restart: {wrong}", agent.name)),
        }
    }
}

/// A connection that is attached to an agent.
struct Talk {
    id: String,
    client: WorkspaceClient,
    follow: Follow,
}

impl Talk {
    async fn with(server: &Server, agent: &Agent) -> Result<Self, String> {
        let client = server.client(Knock::at(server.address)).await;
        let mut client = client.ok_or("no connection came about")?;
        let mut follow = Follow::new(&agent.id);
        client.say(follow.attach()).await;
        let mut talk = Self { id: agent.id.clone(), client, follow };
        let begun = async {
            while talk.follow.snapshots() == 0 {
                talk.next().await?;
            }
            Ok::<_, String>(())
        };
        timeout(TURN, begun).await.map_err(|_| "it was not attached to".to_owned())??;
        Ok(talk)
    }

    async fn prompts(&mut self, prompt: &str) {
        let prompt = json!({"type": "send_input", "session_id": self.id, "input": prompt});
        self.client.say(prompt).await;
    }

    /// Takes one turn and returns what the agent said.
    async fn turn(&mut self, prompt: &str) -> Result<String, String> {
        self.prompts(prompt).await;
        let answer = timeout(TURN, self.answer()).await;
        answer.map_err(|_| format!("the turn {prompt:?} has no end"))?
    }

    async fn answer(&mut self) -> Result<String, String> {
        let (mut text, mut has_begun) = (String::new(), false);
        loop {
            let Some(told) = self.next().await? else { continue };
            match told["type"].as_str() {
                Some("error") => return Err(told.to_string()),
                Some("permission_request") => self.allow(&told["request_id"]).await,
                Some("agent_event") => {
                    let event = &told["event"];
                    match event["kind"].as_str() {
                        // A turn before may still have had to end.
                        Some("turn_started") => (text, has_begun) = (String::new(), true),
                        Some("text") => text.push_str(event["text"].as_str().unwrap_or_default()),
                        Some("turn_ended") if !has_begun => {}
                        Some("turn_ended") if event["outcome"] == "completed" => return Ok(text),
                        Some("turn_ended") => return Err(event.to_string()),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
    }

    async fn allow(&mut self, request: &Value) {
        let response = json!({"type": "permission_response", "request_id": request, "allow": true});
        self.client.say(response).await;
    }

    /// The next frame, if it is a message.
    async fn next(&mut self) -> Result<Option<Value>, String> {
        let heard = self.client.next_ever().await.ok_or("the connection ended")?;
        self.follow.take(&heard)?;
        Ok(match heard {
            ServerMessage::Message(message) => Some(message),
            ServerMessage::Output(_) => None,
        })
    }
}
