//! Any program that speaks the Agent Client Protocol, version 1: JSON-RPC 2.0 in lines, one process
//! for many turns.
//!
//! Its traps:
//!
//! - No prompt may be sent before the session is open.
//! - An agent that loads a session sends the whole history again.
//! - Each permission request that is open when a turn is cancelled must still be answered.
//! - Some agents cannot load a session at all. Such an agent is not stopped for being idle.
//!
//! Its parts:
//!
//! - [`AcpCommand`]: the command of a program that is not built in
//! - `launch`: the command lines; `opening`: the messages until the session is open
//! - `updates`: the agent's updates about a turn; `permission`: its permission requests

mod launch;
mod opening;
mod permission;
mod updates;

use std::collections::HashMap;

use base::Secret;
use protocol::workspace::TurnOutcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::{
    launch::Program,
    permission::{Open, Permissions},
    updates::Updates,
};
use super::{
    json::{from_state, line, number, owned, part, text, to_state},
    words,
};
use crate::agent::{
    dialect::contract::{AgentOutput, Decision, Dialect, Halt, ParsedLine, Start, TurnResult},
    launch::{Exit, Launch, Signal},
    settings::{BadSettings, Settings},
    usage::Usage,
};

/// A program from the configuration that speaks the Agent Client Protocol. Unlike an `McpServer`, it is the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcpCommand {
    /// The provider's name.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its additional environment variables, which may hold keys.
    pub env: Vec<(String, Secret)>,
}

/// One session of a program that speaks the protocol.
#[derive(Debug)]
pub(crate) struct Acp {
    settings: Settings,
    program: Program,
    /// The id of the newest request to the program.
    next_id: u64,
    /// The requests without an answer, newest first. There are few, since a turn sends one after the
    /// other.
    unanswered: Vec<(u64, Request)>,
    stage: Stage,
    /// The conversation to resume.
    conversation: Option<String>,
    abilities: Abilities,
    /// A prompt that waits until the session is open.
    prompt: Option<String>,
    permissions: Permissions,
    updates: Updates,
}

/// The stage of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// The program was asked for its abilities or for a session, and has not opened one yet.
    Opening,
    /// The session with this id takes prompts.
    Open(String),
    /// The program opened no session, for this reason.
    Closed(String),
}

/// A request to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Request {
    Initialize,
    New,
    /// To load or to resume the conversation.
    Load,
    /// To change a setting of the session. A failure does not end the turn.
    Choice,
    Prompt,
}

/// The ways in which an agent can resume a conversation.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Abilities {
    are_known: bool,
    load: bool,
    resume: bool,
}

/// The state without the settings: that of the session, and of the turn.
type State = (
    (u64, Vec<(u64, Request)>, Stage, Option<String>),
    (Abilities, Option<String>, HashMap<String, Open>, Updates),
);

/// The most requests without an answer. Beyond this the oldest is forgotten: a program that never
/// answers must not fill the memory.
const MAX_UNANSWERED: usize = 64;

/// The error code of JSON-RPC for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;

impl Acp {
    /// A program from the configuration.
    pub(crate) fn new(command: AcpCommand, settings: Settings) -> Result<Self, BadSettings> {
        Self::with(Program::Configured(command), settings)
    }

    /// Gemini CLI.
    pub(crate) fn gemini(settings: Settings) -> Result<Self, BadSettings> {
        Self::with(Program::Gemini, settings)
    }

    pub(crate) fn opencode(settings: Settings) -> Result<Self, BadSettings> {
        Self::with(Program::Opencode, settings)
    }

    fn with(program: Program, settings: Settings) -> Result<Self, BadSettings> {
        settings.check(program.reserved())?;
        let used = settings.used.cost_usd.unwrap_or(0.0);
        Ok(Self {
            permissions: Permissions::new(settings.permissions),
            settings,
            program,
            next_id: 0,
            unanswered: Vec::new(),
            stage: Stage::Opening,
            conversation: None,
            abilities: Abilities::default(),
            prompt: None,
            updates: Updates::after(used),
        })
    }

    fn take(&mut self, (session, turn): State) {
        (self.next_id, self.unanswered, self.stage, self.conversation) = session;
        let open;
        (self.abilities, self.prompt, open, self.updates) = turn;
        self.permissions.restore(open);
    }

    /// The line with a new request to the program.
    fn request(&mut self, what: Request, method: &str, params: &Value) -> Vec<u8> {
        self.next_id += 1;
        // The newest request is first: most answers are to it.
        self.unanswered.truncate(MAX_UNANSWERED - 1);
        self.unanswered.insert(0, (self.next_id, what));
        line(&json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params }))
    }

    /// The line that gives the waiting prompt to an open session; `None` if no prompt waits.
    fn prompt_now(&mut self, session: &str) -> Option<Vec<u8>> {
        let prompt = self.prompt.take()?;
        self.updates.begin();
        let blocks = json!([{ "type": "text", "text": prompt }]);
        let params = json!({ "sessionId": session, "prompt": blocks });
        Some(self.request(Request::Prompt, "session/prompt", &params))
    }

    /// Handles an answer of the program.
    fn take_answer(&mut self, line: &Value) -> ParsedLine {
        let id = number(line, "/id");
        let Some(at) = self.unanswered.iter().position(|(request, _)| *request == id) else {
            return ParsedLine::default();
        };
        let (_, what) = self.unanswered.remove(at);
        let answer = match line.get("error") {
            Some(error) => Err(fault(error)),
            None => Ok(part(line, "/result")),
        };
        ParsedLine::progress(match what {
            Request::Initialize => self.take_abilities(answer),
            Request::New => self.take_session(answer),
            Request::Load => self.end_load(answer),
            Request::Choice => {
                answer.err().map(|why| AgentOutput::notice(&why)).into_iter().collect()
            }
            Request::Prompt => vec![AgentOutput::Ended(self.turn_result(answer))],
        })
    }

    /// The result of a turn, which ends with the answer to its prompt.
    fn turn_result(&mut self, answer: Result<Value, String>) -> TurnResult {
        let (text, mut usage) = self.updates.end();
        let result = match answer {
            Ok(result) => result,
            Err(why) => return TurnResult { text, ..TurnResult::failed(&why, usage) },
        };
        (usage.input_tokens, usage.output_tokens) = tokens(&result);
        match outcome_of(self::text(&result, "/stopReason")) {
            Ok(TurnOutcome::Completed) => TurnResult::completed(text, usage),
            Ok(outcome) => TurnResult { outcome, text, error: None, usage },
            Err(why) => TurnResult { text, ..TurnResult::failed(&why, usage) },
        }
    }

    /// Handles a request of the program. A request of an unknown kind is answered with an error.
    fn take_request(&mut self, request: &Value) -> ParsedLine {
        match text(request, "/method") {
            "session/request_permission" => ParsedLine::progress(self.permissions.ask(request)),
            method => {
                // Without an answer, an agent may wait for ever.
                let message = format!("this client has no method {}", words::cut(method, 100));
                let error = json!({ "code": METHOD_NOT_FOUND, "message": message });
                let answer =
                    json!({ "jsonrpc": "2.0", "id": part(request, "/id"), "error": error });
                ParsedLine::waiting(vec![AgentOutput::Write(line(&answer))])
            }
        }
    }

    /// Handles a notification of the program.
    fn take_notification(&mut self, notification: &Value) -> ParsedLine {
        match text(notification, "/method") {
            // Such an update still shows that the program is at work.
            "session/update" if self.is_of_other_session(notification) => {
                ParsedLine::progress(Vec::new())
            }
            "session/update" => self.updates.apply(&part(notification, "/params/update")),
            "$/cancel_request" => {
                let key = part(notification, "/params/requestId").to_string();
                ParsedLine::progress(vec![AgentOutput::AskCancelled { key }])
            }
            _ => ParsedLine::default(),
        }
    }
}

impl Acp {
    /// Whether a notification is about another session of the program, such as a helper's. Text of such a
    /// session is not part of the answer.
    fn is_of_other_session(&self, notification: &Value) -> bool {
        let of = text(notification, "/params/sessionId");
        matches!(&self.stage, Stage::Open(session) if !of.is_empty() && of != session)
    }
}

impl Dialect for Acp {
    fn provider(&self) -> &str {
        self.program.provider()
    }

    fn is_warm(&self) -> bool {
        true
    }

    fn is_resumable(&self) -> bool {
        !self.abilities.are_known || self.abilities.load || self.abilities.resume
    }

    fn used(&self) -> Option<Usage> {
        let cost = self.updates.cost_before();
        (cost > 0.0).then(|| Usage { cost_usd: Some(cost), ..Usage::default() })
    }

    fn launch(&mut self, start: Start<'_>) -> Launch {
        self.unanswered.clear();
        self.stage = Stage::Opening;
        self.conversation = start.conversation.map(str::to_owned);
        self.prompt = Some(start.prompt.to_owned());
        self.permissions.clear();
        // The program goes on counting the cost of a conversation when it is started again.
        self.updates = Updates::after(self.updates.cost_before());
        let hello = self.hello();
        Launch { stdin: Some(hello), keep_stdin_open: true, ..self.program.launch(&self.settings) }
    }

    fn prompt(&mut self, text: &str, _id: &str) -> Vec<u8> {
        self.prompt = Some(text.to_owned());
        match self.stage.clone() {
            Stage::Open(session) => self.prompt_now(&session).unwrap_or_default(),
            // The prompt is sent once the session is open.
            Stage::Opening => Vec::new(),
            // The process still runs, so it is asked for a session again.
            Stage::Closed(_) => self.open_anew(),
        }
    }

    fn parse(&mut self, line: &Value) -> ParsedLine {
        match (line.get("method").is_some(), line.get("id").is_some()) {
            (true, true) => self.take_request(line),
            (true, false) => self.take_notification(line),
            (false, true) => self.take_answer(line),
            (false, false) => ParsedLine::default(),
        }
    }

    /// Before the session is open there is no turn to cancel, so the process is ended.
    fn interrupt(&mut self) -> Halt {
        let Stage::Open(session) = &self.stage else { return Halt::Signal(Signal::Term) };
        let params = json!({ "sessionId": session });
        let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": params });
        Halt::Write(line(&cancel))
    }

    fn answer(&mut self, key: &str, decision: Decision<'_>) -> Vec<u8> {
        self.permissions.answer(key, decision)
    }

    fn state(&self) -> Value {
        to_state(&(
            (self.next_id, &self.unanswered, &self.stage, &self.conversation),
            (self.abilities, &self.prompt, self.permissions.open(), &self.updates),
        ))
    }

    fn restore(&mut self, state: Value) -> bool {
        from_state(state).map(|state| self.take(state)).is_some()
    }

    fn exited(&mut self, _exit: Exit, _tail: &str) -> Vec<AgentOutput> {
        match &self.stage {
            Stage::Closed(why) => {
                vec![AgentOutput::Ended(TurnResult::failed(why, Usage::default()))]
            }
            Stage::Opening | Stage::Open(_) => Vec::new(),
        }
    }
}

/// The input and output tokens of a turn, in the protocol's form or in that of Gemini CLI.
fn tokens(result: &Value) -> (u64, u64) {
    let (of, names) = match part(result, "/usage") {
        Value::Null => {
            (part(result, "/_meta/quota/token_count"), ["/input_tokens", "/output_tokens"])
        }
        usage => (usage, ["/inputTokens", "/outputTokens"]),
    };
    (number(&of, names[0]), number(&of, names[1]))
}

/// The outcome for a stop reason, or the error.
fn outcome_of(reason: &str) -> Result<TurnOutcome, String> {
    match reason {
        "end_turn" => Ok(TurnOutcome::Completed),
        "cancelled" => Ok(TurnOutcome::Interrupted),
        "max_tokens" => Err("The answer is as long as the model may make it.".to_owned()),
        "max_turn_requests" => Err("The turn took as many requests as it may.".to_owned()),
        "refusal" => Err("The agent refused to go on.".to_owned()),
        other => Err(format!("The turn ended with \"{}\".", words::cut(other, 100))),
    }
}

/// An error of JSON-RPC, in words for people.
fn fault(error: &Value) -> String {
    let message = owned(error, "/message");
    let details = match error.pointer("/data") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(details)) => format!(": {details}"),
        Some(data) => match text(data, "/details") {
            "" => format!(": {data}"),
            details => format!(": {details}"),
        },
    };
    let hint = match error.pointer("/code").and_then(Value::as_i64) {
        Some(-32000) => " (log in once with the program itself, or use the gateway)",
        _ => "",
    };
    words::notice(&format!("{message}{details}{hint}"))
}
