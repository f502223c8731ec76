//! Which of an agent's turns answers a prompt, and what it says.

use std::{
    io::{Write, stdout},
    time::Duration,
};

use anyhow::{anyhow, bail};
use client::{
    Workspace,
    workspace::{Address, Ending, Following, FollowingSettings, Seen},
};
use protocol::workspace::{
    AgentEvent, ClientMessage, SessionInfo, SessionStatus, TurnOutcome, client::SendInput,
};

use crate::commands::{
    note, say,
    table::plain,
    words::clean,
    workspace::{short, terms::called},
};

/// How long a lost server is tried for while a turn is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Gives an agent a prompt and prints its answer, to its end; with `json`, each event.
pub(super) async fn ask(
    workspace: Workspace,
    address: &Address,
    session: &SessionInfo,
    text: String,
    json: bool,
) -> anyhow::Result<()> {
    let settings =
        FollowingSettings { is_agent: true, patience: PATIENCE, ..FollowingSettings::default() };
    let mut following = Following::begin(workspace, address, session.id, settings)?;
    let mut turn = Turn::after(session.status);
    let mut prompt =
        Some(ClientMessage::SendInput(SendInput { session_id: session.id, input: text }));
    while let Some(seen) = following.next().await? {
        // Whatever comes after the first screen is told. A prompt before it could be answered in it.
        if matches!(seen, Seen::Screen(_))
            && let Some(prompt) = prompt.take()
        {
            following.tell(&prompt)?;
        }
        match turn.take(seen, session)? {
            Heard::Event(event) if json => say(&serde_json::to_string(&event)?)?,
            Heard::Event(event) => turn.print(&event)?,
            Heard::Aside(words) => note(&words),
            Heard::Nothing => {}
        }
        if let Some(ended) = turn.ended.take() {
            following.close().await;
            return ended.map_err(|words| anyhow!("{words}"));
        }
    }
    bail!("the server stopped telling before the turn ended")
}

/// What is heard of the turn.
#[derive(Debug, PartialEq)]
enum Heard {
    Event(AgentEvent),
    Aside(String),
    Nothing,
}

/// The turn that answers a prompt.
#[derive(Debug, PartialEq)]
struct Turn {
    /// Another turn has to end first.
    waits: bool,
    /// Its number, once it has begun.
    number: Option<u64>,
    /// Whether anything of the answer was printed, and whether that ended its line.
    has_text: bool,
    in_line: bool,
    ended: Option<Result<(), String>>,
}

impl Turn {
    /// The turn of a prompt that is sent now. Where prompts of others wait already, the first of these
    /// is taken for ours: nothing tells them apart.
    fn after(status: SessionStatus) -> Self {
        let waits = status == SessionStatus::Running;
        Self { waits, number: None, has_text: false, in_line: false, ended: None }
    }

    fn take(&mut self, seen: Seen, session: &SessionInfo) -> anyhow::Result<Heard> {
        Ok(match seen {
            Seen::Event(event) => self.event(event),
            Seen::Asked(asked) => Heard::Aside(format!(
                "{} asks whether it may use {}: warren session attach {} answers",
                called(session),
                plain(&asked.tool),
                short(session.id),
            )),
            Seen::Lost(words) => Heard::Aside(format!("{words}; trying again")),
            Seen::Notice(notice) => Heard::Aside(clean(&notice.message)),
            Seen::Refused(words) => bail!("{}", clean(&words)),
            Seen::Ended(Ending::Exited) => bail!("{} has ended", called(session)),
            Seen::Ended(Ending::Killed) => bail!("{} was killed", called(session)),
            _ => Heard::Nothing,
        })
    }

    fn event(&mut self, event: AgentEvent) -> Heard {
        match (&event, self.number) {
            (AgentEvent::TurnEnded { .. }, None) => {
                self.waits = false;
                Heard::Nothing
            }
            (AgentEvent::TurnStarted { turn }, None) if !self.waits => {
                self.number = Some(*turn);
                Heard::Event(event)
            }
            (_, None) => Heard::Nothing,
            (AgentEvent::TurnEnded { turn, outcome, error, .. }, Some(ours)) if *turn == ours => {
                self.ended = Some(match outcome {
                    TurnOutcome::Completed => Ok(()),
                    TurnOutcome::Interrupted => Err("the turn was interrupted".to_owned()),
                    TurnOutcome::Failed => Err(format!(
                        "the turn failed: {}",
                        error.as_deref().map_or("the agent does not say why".into(), clean)
                    )),
                });
                Heard::Event(event)
            }
            (_, Some(_)) => Heard::Event(event),
        }
    }

    fn print(&mut self, event: &AgentEvent) -> std::io::Result<()> {
        let mut out = stdout().lock();
        out.write_all(self.text(event).as_bytes())?;
        out.flush()
    }

    /// What an event adds to the answer, as it is printed.
    fn text(&mut self, event: &AgentEvent) -> String {
        let mut text = String::new();
        match event {
            AgentEvent::Text { text: said, delta } => {
                if !delta && self.in_line {
                    text.push('\n');
                }
                text.push_str(&clean(said));
            }
            AgentEvent::TurnEnded { text: whole, .. } => {
                if let Some(whole) = whole.as_ref().filter(|_| !self.has_text) {
                    text.push_str(&clean(whole));
                }
                if !text.ends_with('\n') && (self.in_line || !text.is_empty()) {
                    text.push('\n');
                }
            }
            AgentEvent::ToolStarted { .. } if self.in_line => text.push('\n'),
            _ => {}
        }
        if !text.is_empty() {
            (self.has_text, self.in_line) = (true, !text.ends_with('\n'));
        }
        text
    }
}

#[cfg(test)]
pub(super) mod tests {
    use jiff::Timestamp;
    use protocol::workspace::{SessionId, SessionKind, SessionMode};

    use super::*;

    pub(crate) fn session() -> SessionInfo {
        SessionInfo {
            id: SessionId::from_random(1),
            name: None,
            mode: SessionMode::Sdk,
            status: SessionStatus::Idle,
            working_dir: "/".to_owned(),
            model: None,
            created_at: Timestamp::UNIX_EPOCH,
            last_active: Timestamp::UNIX_EPOCH,
            attached_clients: 0,
            adopted_pid: None,
            project_id: None,
            node_id: None,
            kind: SessionKind::Claude,
            provider: "claude".to_owned(),
            hidden: false,
            team_id: None,
            is_team_leader: false,
            reachable: true,
            dev_server_port: None,
            tags: Vec::new(),
        }
    }

    fn said(text: &str, delta: bool) -> AgentEvent {
        AgentEvent::Text { text: text.to_owned(), delta }
    }

    fn ended(turn: u64, outcome: TurnOutcome) -> AgentEvent {
        AgentEvent::TurnEnded { turn, outcome, error: None, text: Some("whole".to_owned()) }
    }

    fn answer(mut turn: Turn, events: Vec<AgentEvent>) -> (String, Option<Result<(), String>>) {
        let mut text = String::new();
        for event in events {
            if let Heard::Event(event) = turn.take(Seen::Event(event), &session()).unwrap() {
                text.push_str(&turn.text(&event));
            }
        }
        (text, turn.ended)
    }

    #[test]
    fn the_turn_after_the_one_that_runs_answers() {
        let events = vec![
            said("of before", false),
            ended(1, TurnOutcome::Completed),
            AgentEvent::TurnStarted { turn: 2 },
            said("mi", false),
            said("ne", true),
            said("more\n", false),
            ended(2, TurnOutcome::Completed),
        ];
        let running = Turn::after(SessionStatus::Running);
        assert_eq!(answer(running, events.clone()), ("mine\nmore\n".to_owned(), Some(Ok(()))));
        let idle = Turn::after(SessionStatus::Idle);
        assert_eq!(answer(idle, events[2..].to_vec()).0, "mine\nmore\n");
    }

    #[test]
    fn an_answer_that_comes_only_at_the_end_is_printed_then() {
        let events = vec![AgentEvent::TurnStarted { turn: 1 }, ended(1, TurnOutcome::Completed)];
        let turn = Turn::after(SessionStatus::Idle);
        assert_eq!(answer(turn, events), ("whole\n".to_owned(), Some(Ok(()))));
    }

    #[test]
    fn a_turn_that_fails_is_a_failure() {
        for outcome in [TurnOutcome::Failed, TurnOutcome::Interrupted] {
            let events = vec![AgentEvent::TurnStarted { turn: 1 }, ended(1, outcome)];
            assert!(matches!(answer(Turn::after(SessionStatus::Idle), events).1, Some(Err(_))));
        }
        let mut turn = Turn::after(SessionStatus::Idle);
        assert!(turn.take(Seen::Ended(Ending::Killed), &session()).is_err());
        assert!(turn.take(Seen::Refused("32 prompts wait".to_owned()), &session()).is_err());
    }

    #[test]
    fn what_an_agent_says_does_nothing_to_the_terminal() {
        let events = vec![AgentEvent::TurnStarted { turn: 1 }, said("a\u{1b}[2J", false)];
        let (text, _) = answer(Turn::after(SessionStatus::Idle), events);
        assert_eq!(text, "a\u{fffd}[2J");
    }
}
