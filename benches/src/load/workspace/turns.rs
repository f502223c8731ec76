//! Prompts to an agent whose process is warm, and to the same one without a daemon.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    Daemon, LIMIT,
    client::{Client, ServerMessage, session},
    terminal::program,
};
use crate::{programs::agent, stats::Times};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Turns {
    /// The daemon; `None`: over the agent's own pipes.
    pub(crate) daemon: Option<Daemon>,
    pub(crate) turns: u32,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// How long the first turn took, with starting the agent, in seconds.
    pub(crate) cold: f64,
    /// From sending a prompt until the first event.
    pub(crate) event: Times,
    pub(crate) text: Times,
    pub(crate) end: Times,
}

pub(super) fn run(plan: &Turns) -> Result<Outcome> {
    match &plan.daemon {
        None => ask(&mut PipedAgent::start()?, plan.turns),
        Some(daemon) => ask(&mut SessionAgent::start(daemon)?, plan.turns),
    }
}

trait Agent {
    fn prompt(&mut self, text: &str) -> Result<()>;

    fn event(&mut self) -> Result<Event>;
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Other,
    Text,
    End,
}

fn ask(agent: &mut dyn Agent, turns: u32) -> Result<Outcome> {
    let cold = turn(agent)?.end.as_secs_f64();
    let mut outcome = Outcome { cold, ..Outcome::default() };
    for _ in 0..turns {
        let turn = turn(agent)?;
        outcome.event.add(turn.event);
        outcome.text.add(turn.text);
        outcome.end.add(turn.end);
    }
    Ok(outcome)
}

/// When each part of a turn came, counted from the prompt.
struct Turn {
    event: Duration,
    text: Duration,
    end: Duration,
}

fn turn(agent: &mut dyn Agent) -> Result<Turn> {
    let (begun, mut first, mut text) = (Instant::now(), None, None);
    agent.prompt("ping")?;
    loop {
        let event = agent.event()?;
        let now = begun.elapsed();
        ensure!(now < LIMIT, "a turn without an end");
        first.get_or_insert(now);
        match event {
            Event::Other => {}
            Event::Text => drop(text.get_or_insert(now)),
            Event::End => {
                let text = text.context("a turn without a text")?;
                return Ok(Turn { event: first.unwrap_or(now), text, end: now });
            }
        }
    }
}

struct SessionAgent {
    client: Client,
    id: String,
}

impl SessionAgent {
    fn start(daemon: &Daemon) -> Result<Self> {
        let mut client = Client::open(daemon)?;
        client.say(&json!({
            "type": "new_session", "working_dir": "/", "mode": "sdk", "provider": "claude",
            "name": "bench",
        }))?;
        let id = session(&client.hear("session_created")?)?;
        client.attach(&id)?;
        Ok(Self { client, id })
    }
}

impl Agent for SessionAgent {
    fn prompt(&mut self, text: &str) -> Result<()> {
        self.client.say(&json!({"type": "send_input", "session_id": self.id, "input": text}))
    }

    fn event(&mut self) -> Result<Event> {
        loop {
            let ServerMessage::Text(told) = self.client.next()? else { continue };
            if told["type"] != "agent_event" {
                continue;
            }
            let event = &told["event"];
            return match event["kind"].as_str() {
                Some("text") => Ok(Event::Text),
                Some("turn_ended") if event["outcome"] == "completed" => Ok(Event::End),
                Some("turn_ended") => bail!("a turn that failed: {event}"),
                _ => Ok(Event::Other),
            };
        }
    }
}

impl Drop for SessionAgent {
    fn drop(&mut self) {
        let _killed = self.client.kill(&self.id);
    }
}

struct PipedAgent {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl PipedAgent {
    fn start() -> Result<Self> {
        let mut command = Command::new(program()?);
        command.arg("agent").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("start the agent")?;
        let out = child.stdout.take().context("an agent without output")?;
        Ok(Self { child, out: BufReader::new(out) })
    }
}

impl Agent for PipedAgent {
    fn prompt(&mut self, text: &str) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("an agent without input")?;
        Ok(writeln!(stdin, "{}", agent::prompt(text))?)
    }

    fn event(&mut self) -> Result<Event> {
        let mut line = String::new();
        ensure!(self.out.read_line(&mut line)? > 0, "the agent has ended");
        let line: Value = serde_json::from_str(&line)?;
        Ok(match line["type"].as_str() {
            Some("stream_event") => Event::Text,
            Some("result") => Event::End,
            _ => Event::Other,
        })
    }
}

impl Drop for PipedAgent {
    fn drop(&mut self) {
        let _killed = self.child.kill();
        let _ended = self.child.wait();
    }
}
