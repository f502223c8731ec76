//! A session, its clock and its outputs.

use std::time::{Duration, Instant};

use protocol::workspace::{AgentEvent, PermissionOutcome, TurnOutcome};
use serde_json::Value;

use crate::agent::{
    AcpCommand, Config, Dialect, Exit, Input, Launch, Output, Settings, TurnEnd, Turns, TurnsError,
    open,
};

pub(super) struct Rig {
    pub(super) turns: Turns,
    pub(super) now: Instant,
}

pub(super) const SECOND: Duration = Duration::from_secs(1);
pub(super) const MINUTE: Duration = Duration::from_secs(60);

pub(super) fn settings() -> Settings {
    Settings {
        working_dir: "/work".to_owned(),
        private_dir: "/private".to_owned(),
        ..Settings::default()
    }
}

/// An agent that is not built in.
pub(super) fn somebody() -> AcpCommand {
    AcpCommand {
        name: "somebody".to_owned(),
        command: "/opt/somebody".to_owned(),
        args: vec!["serve".to_owned()],
        env: vec![("MODE".to_owned(), "acp".into())],
    }
}

impl Rig {
    pub(super) fn new(provider: &str) -> Self {
        Self::with(provider, settings(), None)
    }

    /// A session that resumes a conversation.
    pub(super) fn resuming(provider: &str, conversation: &str) -> Self {
        Self::with(provider, settings(), Some(conversation))
    }

    pub(super) fn with(provider: &str, settings: Settings, conversation: Option<&str>) -> Self {
        let dialect = open(provider, &[somebody()], settings).unwrap();
        Self::of(dialect, &Config::default(), conversation)
    }

    pub(super) fn of(
        dialect: Box<dyn Dialect>,
        config: &Config,
        conversation: Option<&str>,
    ) -> Self {
        let config = Config { request_prefix: "s".to_owned(), ..config.clone() };
        let turns = Turns::new(config, dialect, conversation.map(str::to_owned));
        Self { turns, now: Instant::now() }
    }

    pub(super) fn handle(&mut self, input: Input) -> Result<Vec<Output>, TurnsError> {
        self.turns.handle(self.now, input)?;
        Ok(self.outputs())
    }

    pub(super) fn outputs(&mut self) -> Vec<Output> {
        std::iter::from_fn(|| self.turns.poll_output()).collect()
    }

    pub(super) fn prompt(&mut self, text: &str) -> Vec<Output> {
        self.handle(Input::Prompt { text: text.to_owned() }).unwrap()
    }

    pub(super) fn start(&mut self, text: &str) -> Launch {
        launch_in(&self.prompt(text))
    }

    pub(super) fn line(&mut self, line: &str) -> Vec<Output> {
        self.handle(Input::Line(line.into())).unwrap()
    }

    pub(super) fn lines(&mut self, lines: &str) -> Vec<Output> {
        lines.lines().flat_map(|line| self.line(line)).collect()
    }

    pub(super) fn stderr(&mut self, text: &str) {
        assert_eq!(self.handle(Input::Stderr(text.to_owned())).unwrap(), []);
    }

    pub(super) fn exit(&mut self, code: i32) -> Vec<Output> {
        self.handle(Input::Exited(Exit::Code(code))).unwrap()
    }

    pub(super) fn interrupt(&mut self) -> Vec<Output> {
        self.handle(Input::Interrupt).unwrap()
    }

    pub(super) fn decide(&mut self, request_id: &str, allow: bool) -> Vec<Output> {
        let request_id = request_id.to_owned();
        self.handle(Input::Permission { request_id, allow, message: None }).unwrap()
    }

    /// Lets time pass. Each deadline on the way is handled at its time.
    pub(super) fn pass(&mut self, span: Duration) -> Vec<Output> {
        let end = self.now + span;
        let mut outputs = Vec::new();
        while let Some(at) = self.turns.poll_timeout().filter(|at| *at <= end) {
            assert!(at >= self.now, "a deadline was forgotten");
            self.now = at;
            self.turns.handle_timeout(at);
            outputs.extend(self.outputs());
            assert!(self.turns.poll_timeout() != Some(at), "a deadline was not met");
        }
        self.now = end;
        outputs
    }
}

pub(super) fn launch_in(outputs: &[Output]) -> Launch {
    let mut launches = outputs.iter().filter_map(|output| match output {
        Output::Start(launch) => Some(launch.clone()),
        _ => None,
    });
    let launch = launches.next().expect("nothing was started");
    assert_eq!(launches.next(), None);
    launch
}

pub(super) fn events(outputs: &[Output]) -> Vec<AgentEvent> {
    let events = outputs.iter().filter_map(|output| match output {
        Output::Event(event) => Some(event.clone()),
        _ => None,
    });
    events.collect()
}

/// The event with which a turn begins.
pub(super) fn begun(turn: u64, prompt: &str) -> AgentEvent {
    AgentEvent::TurnStarted { turn, prompt: Some(prompt.to_owned()) }
}

/// A text of the agent that answers a prompt.
pub(super) fn text(text: &str, delta: bool) -> AgentEvent {
    AgentEvent::Text { text: text.to_owned(), delta, unasked: false }
}

pub(super) fn tool_started(id: &str, name: &str, input: Value) -> AgentEvent {
    AgentEvent::ToolStarted { id: id.to_owned(), name: name.to_owned(), input }
}

pub(super) fn tool_finished(id: &str, ok: bool, output: &str) -> AgentEvent {
    AgentEvent::ToolFinished { id: id.to_owned(), ok, output: output.to_owned() }
}

/// The event with which the first turn ends, with this answer.
pub(super) fn completed(text: &str) -> AgentEvent {
    let (outcome, text) = (TurnOutcome::Completed, Some(text.to_owned()));
    AgentEvent::TurnEnded { turn: 1, outcome, error: None, text }
}

pub(super) fn notices(outputs: &[Output]) -> Vec<String> {
    let notices = events(outputs).into_iter().filter_map(|event| match event {
        AgentEvent::Notice { message } => Some(message),
        _ => None,
    });
    notices.collect()
}

pub(super) fn ends(outputs: &[Output]) -> Vec<TurnEnd> {
    let ends = outputs.iter().filter_map(|output| match output {
        Output::TurnEnded(end) => Some(end.clone()),
        _ => None,
    });
    ends.collect()
}

pub(super) fn end(outputs: &[Output]) -> TurnEnd {
    let [end] = ends(outputs).try_into().expect("one turn ends");
    end
}

pub(super) fn failure(outputs: &[Output]) -> String {
    let end = end(outputs);
    assert_eq!(end.outcome, TurnOutcome::Failed);
    end.error.expect("a failure has a reason")
}

/// The lines that are written to the process.
pub(super) fn written(outputs: &[Output]) -> Vec<Value> {
    let written = outputs.iter().filter_map(|output| match output {
        Output::Write(bytes) => Some(bytes.clone()),
        _ => None,
    });
    written.flat_map(|bytes| json_lines(&bytes)).collect()
}

pub(super) fn json_lines(bytes: &[u8]) -> Vec<Value> {
    assert_eq!(bytes.last(), Some(&b'\n'), "a line has an end");
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Whether a permission request expired.
pub(super) fn has_expired(outputs: &[Output]) -> bool {
    let is_expired =
        |o: &Output| matches!(o, Output::Resolved { outcome: PermissionOutcome::Expired, .. });
    outputs.iter().any(is_expired)
}

/// The ids of the permission requests among these outputs.
pub(super) fn asks(outputs: &[Output]) -> Vec<String> {
    let asks = outputs.iter().filter_map(|output| match output {
        Output::Ask { request_id, .. } => Some(request_id.clone()),
        _ => None,
    });
    asks.collect()
}
